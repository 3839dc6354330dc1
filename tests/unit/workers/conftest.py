"""Models in these tests are so small that a second thread costs more than it computes."""

import torch

torch.set_num_threads(1)
