"""A torch network trained on degrees: CrossEntropyLoss takes rows of probabilities as targets."""

import numpy as np
import torch

from contone import CumulativeMass, Inversion, Logical, datasets, evaluate

data = datasets.load("artificial")
L = CumulativeMass().apply(data.D)
train, test = np.arange(0, len(L), 4), np.arange(1, len(L), 4)


def train_network(targets: np.ndarray) -> np.ndarray:
    """A small network trained on features and targets of the training rows; its answer for the others."""
    torch.manual_seed(0)
    X, T = (torch.tensor(A, dtype=torch.float32) for A in (data.X, targets))
    network = torch.nn.Sequential(
        torch.nn.Linear(X.shape[1], 32), torch.nn.Tanh(), torch.nn.Linear(32, targets.shape[1])
    )
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
    loss = torch.nn.CrossEntropyLoss()
    for _ in range(200):
        optimiser.zero_grad()
        loss(network(X[train]), T).backward()  # T holds probabilities, not class numbers
        optimiser.step()
    with torch.no_grad():
        return torch.softmax(network(X[test]).double(), dim=1).numpy()


for title, method in (("degrees", Inversion()), ("labels", Logical())):
    answer = train_network(method.fit_enhance(data.X[train], L[train]))
    print(f"trained on {title:8} KL to the truth {evaluate(data.D[test], answer).kl:.4f}")
