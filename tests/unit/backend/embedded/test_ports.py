import os
import socket

import pytest

from backend.embedded.errors import EmbeddedError
from backend.embedded.ports import Ports, free_port, is_free, require_free


def test_ports_are_counted_from_the_base() -> None:
    ports = Ports(9000)
    assert [ports.api, ports.postgres, ports.valkey, ports.ray_dashboard, ports.ray_gcs] == [*range(9000, 9005)]


@pytest.mark.parametrize("base", [0, 80, 65_532, 70_000])
def test_a_base_out_of_range_is_named(base: int) -> None:
    with pytest.raises(EmbeddedError, match=rf"Port {base} is out of range.*FOREDECK_PORT"):
        Ports(base)


def test_a_taken_port_is_named_with_its_holder_and_the_mend() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not is_free(port)
        with pytest.raises(EmbeddedError) as caught:
            require_free("The API", port)
    message = str(caught.value)
    assert f"The API cannot listen on 127.0.0.1:{port}" in message
    assert f"process {os.getpid()}" in message
    assert "--port BASE" in message
    assert "FOREDECK_PORT" in message


def test_a_free_port_passes() -> None:
    port = free_port()
    assert is_free(port)
    require_free("The API", port)
