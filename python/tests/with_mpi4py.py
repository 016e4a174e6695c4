"""A program that uses MPI itself, through mpi4py: mpirun -np N python3 with_mpi4py.py"""

import torch
from mpi4py import MPI

import sluice.torch as sluice
from reference import check, check_equal, finish, make_net, step_both


def main() -> None:
    torch.set_num_threads(1)
    sluice.init()
    own = MPI.COMM_WORLD.Dup()
    check("both know the same ranks", own.Get_rank() == sluice.rank())
    alone, together = make_net(), make_net()
    reference = torch.optim.SGD(alone.parameters(), 0.1)
    optimizer = sluice.DistributedOptimizer(
        torch.optim.SGD(together.parameters(), 0.1), together.named_parameters()
    )
    for step in range(4):
        step_both(step, (alone, reference), (together, optimizer))
        check("mpi4py sums", own.allreduce(1) == sluice.size())  # while gradients are in flight
    check_equal("training beside mpi4py", alone, together)
    finish()


main()
