"""Measures wayferry.quic beside aiopquic, aioquic, qh3, native noq and plain UDP.

    python bench.py [--only NAME,…] [--adapters NAME,…] [--rounds N] [--seconds S] [--json FILE] [--plot FILE]
    python bench.py --list

Every sample is two fresh processes, a server and a client, on loopback (`loop-*`: one process that is both);
every byte is checked, of HTTP's bodies the length. Rounds are interleaved (A B C, A B C, …): a machine
that slows down slows all; rows are medians. CPU is the time of all threads of all processes, user and system,
per GB (10⁹ bytes) of payload or per thing done. The table goes to stdout, progress to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import adapters
import plot
import report
import runner
from child import Failed
from payload import Pattern
from scenario import Scenario, table
from target import Rows


def main() -> int:
    options = arguments()
    scenarios = chosen(options.only)
    if options.list:
        for scenario in scenarios:
            print(f"{scenario.name:<20} {scenario.title}{'  (only by name)' if scenario.heavy else ''}")
        return 0
    names = present(options.adapters)
    with tempfile.TemporaryDirectory(prefix="wayferry-bench-") as folder:
        rows = measure(scenarios, names, place(Path(folder)), options)
    report.compare(rows, scenarios)
    print(report.table(rows))
    if options.json:
        report.write(rows, names, options.json)
    if options.plot:
        made = report.document(rows, names)
        plot.draw(rows, scenarios, f"{made['machine']}; commit {made['commit'][:12]}", options.plot)
    return 1 if any("failed" in row for row in rows.values()) else 0


def arguments() -> argparse.Namespace:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", type=words, metavar="NAME,…", help="these scenarios; a trailing * takes all that begin so"
    )
    parser.add_argument("--adapters", type=words, default=adapters.NAMES, metavar="NAME,…")
    parser.add_argument("--rounds", type=int, default=5, help="samples of each (default 5)")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a sample (default 2)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="an SVG picture")
    parser.add_argument("--list", action="store_true", help="the scenarios, and nothing else")
    options = parser.parse_args()
    unknown = set(options.adapters).difference(adapters.NAMES)
    if unknown:
        parser.error(f"no adapter `{min(unknown)}`; there are {', '.join(adapters.NAMES)}")
    return options


def words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def chosen(only: list[str] | None) -> list[Scenario]:
    everything = table()
    if only is None:
        return [scenario for scenario in everything if not scenario.heavy or "--list" in sys.argv]
    found: list[Scenario] = []
    for word in only:
        matching = [
            one
            for one in everything
            if one.name == word or (word[-1] == "*" and one.name.startswith(word[:-1]))
        ]
        if not matching:
            sys.exit(f"error: no scenario `{word}`\n\nhint: --list names them")
        found += [scenario for scenario in matching if scenario not in found]
    return found


def present(names: list[str]) -> list[str]:
    """Without those that cannot run here; says why."""
    able = []
    for name in names:
        missing = adapters.absent(name) if name in adapters.PYTHON else None
        if name == adapters.NATIVE and not native().is_file():
            missing = f"`{native()}` is not built"
        if missing is None:
            able.append(name)
        else:
            print(f"bench: without {name}: {missing}", file=sys.stderr)
    if not able:
        sys.exit("error: no adapter can run\n\nhint: make bench-python builds and installs them")
    return able


def measure(
    scenarios: list[Scenario], names: list[str], where: runner.Place, options: argparse.Namespace
) -> Rows:
    rows: Rows = {}
    for number, scenario in enumerate(scenarios, 1):
        able = [name for name in names if fits(scenario, name)]
        samples: dict[str, list[runner.Sample]] = {name: [] for name in able}
        failed: dict[str, str] = {}
        for turn in range(1 if scenario.heavy else options.rounds):
            for name in able:
                if name in failed:
                    continue
                before = f"[{number}/{len(scenarios)}] {scenario.name} {turn + 1}/{options.rounds} {name}"
                try:
                    sample = runner.run(scenario, name, where, options.seconds, turn)
                except Failed as failure:
                    failed[name] = str(failure)
                    print(f"{before}: failed: {failure}", file=sys.stderr)
                else:
                    samples[name].append(sample)
                    print(f"{before}: {brief(sample)}", file=sys.stderr)
        rows |= {
            (scenario.name, name): report.row(scenario, name, samples[name], failed.get(name))
            for name in able
        }
    return rows


def fits(scenario: Scenario, name: str) -> bool:
    if scenario.web:
        return name in adapters.PYTHON and adapters.PYTHON[name].web
    if scenario.http:
        return name in adapters.PYTHON and adapters.PYTHON[name].http
    return name not in scenario.without and (scenario.compat or name != adapters.COMPAT)


def brief(sample: runner.Sample) -> str:
    return json.dumps(
        {key: round(value, 3) if isinstance(value, float) else value for key, value in sample.items()}
    )[1:-1]


def place(folder: Path) -> runner.Place:
    where = runner.Place(
        folder=folder,
        cert=folder / "cert.pem",
        key=folder / "key.pem",
        pattern=folder / "pattern",
        native=native(),
        python_path=REPOSITORY / "python",
    )
    Pattern.write(where.pattern)
    certify(where.cert, where.key)
    return where


def certify(cert: Path, key: Path) -> None:
    """A certificate that all of the libraries read: P-256, for `localhost`."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(
            name, name, secret.public_key(), x509.random_serial_number(), now, now + timedelta(days=2)
        )
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(secret, hashes.SHA256())
    )
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    key.write_bytes(
        secret.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )


def native() -> Path:
    folder = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    return folder / "release" / "examples" / "endpoint_bench"


REPOSITORY = Path(__file__).resolve().parents[2]

if __name__ == "__main__":
    sys.path.insert(1, str(REPOSITORY / "python"))
    sys.exit(main())
