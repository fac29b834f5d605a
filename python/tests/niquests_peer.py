"""What a person who knows niquests does: a whole body and one as it comes, over HTTP/3, as its own program.

niquests_peer.py PORT ROOTS      prints as JSON what it was answered
"""

from __future__ import annotations

import json
import sys

import niquests

SERVER_NAME = "localhost"
SIZE = 500_000


def main(port: int, roots: str) -> None:
    with niquests.Session(resolver="system://") as session:
        # As if a server had said so in `Alt-Svc`.
        session.quic_cache_layer[SERVER_NAME, port] = (SERVER_NAME, port)
        url = f"https://{SERVER_NAME}:{port}"
        whole = session.post(f"{url}/whole?q=1", data=bytes(SIZE), verify=roots, timeout=10)
        streamed = session.get(f"{url}/missing", verify=roots, stream=True, timeout=10)
        length = sum(len(piece) for piece in streamed.iter_content(1000))
        lengths = [len(whole.content or b""), length]
        answers = [
            {
                "status": answer.status_code,
                "version": answer.http_version,
                "length": length,
                "query": answer.headers["x-query"],
            }
            for answer, length in zip((whole, streamed), lengths, strict=True)
        ]
    print(json.dumps(answers))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
