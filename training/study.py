"""The tables of docs/tinymoe.md, from the traces that ship: `python training/study.py`.

Hit rates of decode by policy and budget; how much of what one domain asks for lies in the hottest half of another; how
well the next experts are guessed.
"""

from __future__ import annotations

from collections import Counter

from expertcache_reference.tinymoe import TINY
from expertcache_reference.traces import open_trace
from expertcache_spec.model import Budget, Key
from expertcache_spec.prefetch.gates import ranked
from expertcache_spec.replay import Result, replay
from expertcache_spec.trace import Trace

DOMAINS = ("italian", "python", "english")
POLICIES = ("lru", "lfu", "lfru", "arc", "belady")
SLOTS = (36, 72, 108)
HALF = TINY.layers * TINY.experts // 2


def decode_rate(result: Result) -> str:
    """Hits among the lookups of decode, first tokens included."""
    rows = [row for phase, row in result.counters.per_phase().items() if phase.startswith("decode")]
    return f"{100 * sum(row.hits for row in rows) / sum(row.lookups for row in rows):.1f} %"


def asked(trace: Trace) -> Counter[Key]:
    """How often decode asks for each record."""
    return Counter(key for event in trace.events if event.phase == "decode" for key in event.keys)


def guessed(trace: Trace) -> tuple[float, float]:
    """Shares of a decoded byte's experts that the layer before, and the byte before, guess right."""
    ahead, before, last = list[float](), list[float](), dict[int, tuple[int, ...]]()
    for event in trace.events:
        if event.phase == "decode":
            if (scores := last.pop(-1, None)) is not None:
                ahead.append(len({*scores} & {*event.rows[0]}) / TINY.top_k)
            if event.layer in last:
                before.append(len({*last[event.layer]} & {*event.rows[0]}) / TINY.top_k)
            last[event.layer] = event.rows[0]
            if event.lookahead:
                last[-1] = tuple(ranked(event.lookahead[0][0])[: TINY.top_k])
    return sum(ahead) / len(ahead), sum(before) / len(before)


def main() -> None:
    """Print the tables and the guesses."""
    traces = {domain: open_trace(f"builtin:tinymoe-{domain}") for domain in DOMAINS}
    print("| trace | slots | " + " | ".join(POLICIES) + " |\n|---|" + "---:|" * (len(POLICIES) + 1))
    for domain, trace in traces.items():
        for slots in SLOTS:
            rates = [decode_rate(replay(trace, policy, Budget(slots=slots))) for policy in POLICIES]
            print(f"| {domain} | {slots} | {' | '.join(rates)} |")
    counts = {domain: asked(trace) for domain, trace in traces.items()}
    print("\n| hottest half of | " + " | ".join(DOMAINS) + " |\n|---|" + "---:|" * len(DOMAINS))
    for domain in DOMAINS:
        hot = {key for key, _ in sorted(counts[domain].items(), key=lambda item: (-item[1], item[0]))[:HALF]}
        shares = [sum(n for key, n in counts[other].items() if key in hot) / counts[other].total() for other in DOMAINS]
        print(f"| {domain} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |")
    for domain, trace in traces.items():
        ahead, before = guessed(trace)
        print(f"\n{domain}: the layer before guesses {100 * ahead:.1f} %, the byte before {100 * before:.1f} %")


if __name__ == "__main__":
    main()
