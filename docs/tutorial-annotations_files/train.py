"""Train a classifier on the degrees, and one on what most people said; judge both on messages nobody labelled."""

import polars as pl
from scipy.special import rel_entr
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from contone import FromClassifier

soft, new = pl.read_parquet("soft.parquet"), pl.read_csv("new.csv")
texts = TfidfVectorizer(ngram_range=(1, 2)).fit(soft["text"])
X, X_new = texts.transform(soft["text"]).toarray(), texts.transform(new["text"]).toarray()
truth = new.select(pl.selectors.ends_with("_degree")).to_numpy()

D = soft["degrees"].to_list()
on_degrees = FromClassifier(LogisticRegression(C=10)).fit(X, D).predict(X_new)

votes = pl.read_csv("votes.csv").sort("item")
majority = votes.select("billing", "defect", "delivery", "praise").to_numpy().argmax(axis=1)
on_majority = LogisticRegression(C=10).fit(X, majority).predict_proba(X_new)

for name, predicted in (("degrees", on_degrees), ("majority", on_majority)):
    print(f"trained on {name}: KL {rel_entr(truth, predicted).sum(axis=1).mean():.3f}")
