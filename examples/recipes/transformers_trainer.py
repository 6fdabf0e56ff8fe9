"""A Hugging Face `Trainer` on degrees: a dataset with a column of degrees, and a loss that takes it."""

import numpy as np
import pandas as pd
import torch
from transformers import Trainer, TrainingArguments

import datasets
from contone import CumulativeMass, Inversion, enhance_table, evaluate
from contone.datasets import load

data = load("artificial")
L = CumulativeMass().apply(data.D)
train, test = np.arange(0, len(L), 4), np.arange(1, len(L), 4)
names = [f"label {j}" for j in range(L.shape[1])]

# The dataset comes back with `degrees`, one list per row; the Trainer calls targets "labels".
frame = pd.DataFrame(data.X[train], columns=["x", "y", "z"]).assign(**dict(zip(names, L[train].T, strict=True)))
soft = enhance_table(datasets.Dataset.from_pandas(frame), labels=names, method=Inversion(), degrees_as="list")
degrees = np.array(soft["degrees"])


class Network(torch.nn.Module):
    """Stands for AutoModelForSequenceClassification.from_pretrained(..., num_labels=3): it gives logits."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 32), torch.nn.Tanh(), torch.nn.Linear(32, len(names)))

    def forward(self, features, labels=None):
        """Logits (n, q) of features (n, d)."""
        return {"logits": self.layers(features)}


def cross_entropy(outputs, labels, num_items_in_batch=None):
    """The loss of a batch: cross_entropy takes rows of probabilities as well as class numbers."""
    return torch.nn.functional.cross_entropy(outputs["logits"], labels)


def train_network(targets):
    """A network trained on features and targets of the training rows; its answer for the others."""
    torch.manual_seed(0)
    rows = {"features": data.X[train].astype("float32"), "labels": targets.astype("float32")}
    how = TrainingArguments(
        "trainer", num_train_epochs=40, per_device_train_batch_size=64, learning_rate=0.01, save_strategy="no",
        report_to="none", disable_tqdm=True, logging_strategy="no", use_cpu=True, seed=0,
    )  # fmt: skip
    network = Network()
    rows = datasets.Dataset.from_dict(rows).with_format("torch")
    Trainer(network, how, train_dataset=rows, compute_loss_func=cross_entropy).train()
    with torch.no_grad():
        logits = network(torch.tensor(data.X[test], dtype=torch.float32))["logits"]
    return torch.softmax(logits.double(), dim=1).numpy()


for title, targets in (("degrees", degrees), ("labels", L[train] / L[train].sum(axis=1, keepdims=True))):
    print(f"trained on {title:8} KL to the truth {evaluate(data.D[test], train_network(targets)).kl:.4f}")
