import pytest

from backend.launcher.jobs import Node
from backend.launcher.room import BusyError, NoRoomError, check_room
from contract.config.needs import Needs

FREE, HALF, TAKEN = Node(8, 8), Node(8, 4), Node(8, 0)


@pytest.mark.parametrize(
    ("needed", "nodes"),
    [
        (Needs(2, 8), [FREE, FREE]),
        (Needs(2, 4), [FREE, HALF, TAKEN]),
        (Needs(1, 8), [Node(0, 0), FREE]),
        (Needs(1, 0), [Node(0, 0)]),
        (Needs(9, 8), None),
    ],
)
def test_there_is_room(needed, nodes):
    check_room("h200", needed, nodes)


@pytest.mark.parametrize(
    ("needed", "nodes", "reason"),
    [
        (Needs(2, 8), [Node(4, 4)], "needs 2 nodes with 8 GPUs each, and cluster h200 has 1 node with 4 GPUs: lower"),
        (Needs(1, 16), [FREE, TAKEN], "needs 1 node with 16 GPUs, and cluster h200 has 2 nodes with 8 GPUs:"),
        (Needs(3, 8), [FREE, FREE, Node(4, 4), Node(0, 0)], "has 2 nodes with 8 GPUs and 1 node with 4 GPUs:"),
        (Needs(1, 1), [Node(0, 0)], "cluster h200 has no GPU:"),
    ],
)
def test_what_never_fits_says_what_is_missing(needed, nodes, reason):
    """Although some of it is busy: waiting would not help. Eight GPUs on two machines are not eight on one."""
    with pytest.raises(NoRoomError) as error:
        check_room("h200", needed, nodes)
    assert reason in str(error.value)


def test_what_is_only_busy_waits_and_says_for_what():
    with pytest.raises(BusyError) as error:
        check_room("h200", Needs(2, 8), [FREE, HALF, TAKEN])
    assert str(error.value) == (
        "Waits for GPUs of cluster h200: the run needs 2 nodes with 8 GPUs each, free are 1 node with 8 GPUs and "
        "1 node with 4 GPUs."
    )
    with pytest.raises(BusyError, match=r"free are no GPU\."):
        check_room("h200", Needs(1, 1), [TAKEN])
