"""Logs that were legal and are spoiled in one way each: the checker names the rule, and the line where it broke."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from expertcache_spec.eviction import POLICIES

from .logs import Log, Mutation, counted, displacing, log, managed, moved, place, staged, verdict

Spoil = Callable[[Log], object]


def change(op: str, nth: int = 0, *, to: dict[str, object], **fields: object) -> Spoil:
    """Change fields of the nth line of that operation."""
    return lambda found: found[place(found, op, nth, **fields)].update(to)


def drop(op: str, nth: int = 0, **fields: object) -> Spoil:
    """Drop the nth line of that operation."""
    return lambda found: found.pop(place(found, op, nth, **fields))


def twice(op: str, nth: int = 0, **fields: object) -> Spoil:
    """Say the nth line of that operation twice."""

    def spoil(found: Log) -> None:
        where = place(found, op, nth, **fields)
        found.insert(where, dict(found[where]))

    return spoil


def before(op: str, nth: int, target: str, place_: int, **fields: object) -> Spoil:
    """Move the nth line of that operation before another line."""
    return lambda found: moved(found, place(found, op, nth, **fields), place(found, target, place_))


def insert(record: dict[str, object], target: str, nth: int = 0, *, after: bool = False, **fields: object) -> Spoil:
    """Insert a line before or after another one."""
    line = {"clock": 0, "thread": 0, **record}
    return lambda found: found.insert(place(found, target, nth, **fields) + after, line)


def header(**fields: object) -> Spoil:
    """Change the header."""
    return lambda found: found[0].update(fields)


def both(*spoils: Spoil) -> Spoil:
    """Several changes together."""
    return lambda found: [spoil(found) for spoil in spoils]


def moving(op: str, nth: int = 0, *, to: tuple[str, dict[str, Any]], **fields: object) -> Spoil:
    """Move the nth line of that operation before the first line of another with those fields."""
    target, named = to
    return lambda found: moved(found, place(found, op, nth, **fields), place(found, target, **named))


def renumbered(old: int, new: int) -> Spoil:
    """Give every line of a ticket the number of another."""
    return lambda found: [record.update(ticket=new) for record in found if record.get("ticket") == old]


bypassing = partial(log, slots=1, overflow="bypass", ahead=0)
"""The log of events of which one record is kept and one is read for the event alone."""
letting_go = partial(log, slots=1, room="retain", ahead=0)
"""The log of events that keep one of the two records that each has loaded."""
unneeded = partial(staged, "reading", "ready", "discarded", taken="")
"""The log of a prefetch outside the cache that lies ready and is not taken."""

DROPPED_CHUNK = both(drop("read_start", read=4), drop("read_end", read=4))
SECOND = {"ticket": 3}

MUTATIONS = [
    # ------------------------------------------------------------------ use, slots, reads
    Mutation("use before publish", "XC-HIST-008", before("compute_start", 0, "publish", 0)),
    Mutation("use while the read is under way", "XC-HIST-008",
             lambda found: moved(found, place(found, "compute_start", key=[0, 2]), place(found, "read_end", read=12))),
    Mutation("use of what is not kept while its read is under way", "XC-HIST-008",
             moving("compute_start", key=[0, 1], to=("read_end", {"read": 5})), bypassing),
    Mutation("work on what the event did not ask for", "XC-HIST-008", change("compute_start", to={"key": [0, 2]})),
    Mutation("work done twice", "XC-HIST-008", twice("compute_start", 1)),
    Mutation("work ends that has not begun", "XC-HIST-008", drop("compute_start", 2)),
    Mutation("slot refilled while a queued step reads it", "XC-HIST-007",
             change("read_start", read=15, to={"slot": 0})),
    Mutation("slot refilled before its record left", "XC-HIST-007", change("read_start", read=12, to={"slot": 1})),
    Mutation("one record in two slots", "XC-HIST-007", change("read_start", read=1, to={"slot": 7})),
    Mutation("record that is not kept written over one that is", "XC-HIST-007",
             change("read_start", ticket=2, to={"slot": 0}), bypassing),
    Mutation("record that is not kept written over itself, which a prefetch keeps", "XC-HIST-007",
             both(insert({"op": "resize", "slots": 2}, "read_start", read=3),
                  insert({"op": "prefetch", "key": [0, 1], "state": "reading"}, "read_start", read=3),
                  lambda found: found[place(found, "read_start", read=3)].pop("ticket"),
                  change("read_start", read=3, to={"slot": 1}), change("read_start", read=4, to={"slot": 1})),
             bypassing),
    Mutation("double read of a range", "XC-HIST-006", change("read_start", read=1, to={"offset": 16384})),
    Mutation("double read of a resident record", "XC-HIST-006",
             insert({"op": "read_start", "read": 12, "offset": 0, "length": 1, "key": [0, 0], "slot": 0}, "combine")),
    Mutation("read beyond the record", "XC-HIST-006", change("read_start", read=2, to={"length": 32769})),
    Mutation("read that nobody asked for", "XC-HIST-006", change("read_start", read=3, to={"key": [0, 5]})),
    Mutation("read ends that is not under way", "XC-HIST-006", twice("read_end", 3)),
    Mutation("read number used again", "XC-HIST-006", change("read_start", read=5, to={"read": 4})),
    Mutation("read number of a read that is over used again", "XC-HIST-006",
             both(change("read_start", read=6, to={"read": 5}), change("read_end", read=6, to={"read": 5}))),
    Mutation("read that ends after its record has failed", "XC-HIST-006",
             insert({"op": "read_end", "read": 4, "offset": 0, "length": 49152}, "fail", after=True), managed),
    Mutation("read for one event alone that ends after it has failed", "XC-HIST-006",
             insert({"op": "fail", "key": [0, 1], "ticket": 1}, "read_end", read=3), bypassing),
    Mutation("read outside the cache that ends after it has failed", "XC-HIST-006",
             both(drop("prefetch", state="discarded"), change("prefetch", state="ready", to={"state": "failed"}),
                  moving("prefetch", state="failed", to=("read_end", {"read": 0}))), unneeded),
    Mutation("read into the cache that names no slot", "XC-HIST-007",
             lambda found: found[place(found, "read_start")].pop("slot")),
    Mutation("short read accepted", "XC-FANOUT-005", change("read_end", read=5, to={"length": 32767})),
    Mutation("read that delivers from elsewhere", "XC-FANOUT-005", change("read_end", read=5, to={"offset": 65535})),
    Mutation("chunk dropped", "XC-RES-015", DROPPED_CHUNK),
    Mutation("publish with a read under way", "XC-RES-015", before("publish", 0, "read_end", 2)),
    Mutation("publish with a read under way, of a size that is not known", "XC-RES-015",
             both(header(geometry={"layers": 2, "experts": 6, "top_k": 2}), before("publish", 0, "read_end", 2))),
    Mutation("publish of what was not read", "XC-RES-015", insert({"op": "publish", "key": [0, 3]}, "combine")),
    Mutation("published twice", "XC-RES-015", twice("publish", 2)),
    Mutation("failure of what was not read", "XC-RES-016", insert({"op": "fail", "key": [0, 3]}, "combine")),
    # ------------------------------------------------------------------ judging
    Mutation("hit on what is absent", "XC-RES-003",
             lambda found: found[place(found, "miss", key=[0, 2])].update(op="hit") or
             found[place(found, "hit", key=[0, 2])].pop("how")),
    Mutation("hit on what is still being read", "XC-RES-015",
             lambda found: found[place(found, "miss", how="join")].update(op="hit") or
             found[place(found, "hit", key=[1, 2])].pop("how"), managed),
    Mutation("miss on what is resident", "XC-RES-003", change("hit", to={"op": "miss", "how": "read"})),
    Mutation("hit by being loaded in the same event", "XC-RES-003",
             lambda found: found[place(found, "miss", 1)].update(op="hit") or found[place(found, "hit")].pop("how")),
    Mutation("lookup lost", "XC-RES-002", drop("hit")),
    Mutation("key judged twice", "XC-RES-002", twice("hit")),
    Mutation("key judged that was not asked for", "XC-RES-002", change("hit", to={"key": [0, 1]})),
    Mutation("wait for a read that nobody does", "XC-RES-027", change("miss", to={"how": "join"})),
    Mutation("second reader of one record", "XC-RES-027", change("miss", how="join", to={"how": "read"}), managed),
    Mutation("miss that fits is kept out", "XC-RES-028", change("miss", 2, to={"how": "refuse"})),
    Mutation("unknown key in a line", "XC-HIST-004", change("publish", to={"key": [0, 6]})),
    Mutation("unknown key in an event", "XC-HIST-004", change("select", to={"experts": [[0, 6]]})),
    Mutation("unknown layer", "XC-HIST-004", change("hit", to={"key": [2, 0]})),
    Mutation("padding doubled into a row", "XC-TRACE-003", change("select", to={"experts": [[0, 0]]})),
    Mutation("row wider than top-k", "XC-TRACE-003", change("select", to={"experts": [[0, 1, 2]]})),
    Mutation("pass skipped", "XC-TRACE-002", change("select", 2, to={"pass": 2})),
    Mutation("layer skipped", "XC-TRACE-002", change("select", 1, to={"layer": 0})),
    # ------------------------------------------------------------------ victims and room
    Mutation("victim leased by its own event", "XC-RES-005", change("evict", to={"key": [1, 2]})),
    Mutation("victim leased by an earlier event", "XC-RES-005", change("evict", to={"key": [0, 0]})),
    Mutation("victim that is absent", "XC-RES-005", change("evict", to={"key": [0, 4]})),
    Mutation("victim evicted twice", "XC-RES-005", twice("evict")),
    Mutation("victim in flight", "XC-RES-005",
             insert({"op": "evict", "key": [1, 2]}, "publish", key=[1, 3], after=True)),
    Mutation("victim pinned", "XC-RES-005",
             insert({"op": "evict", "key": [0, 0]}, "resize", after=True), managed),
    Mutation("victim not the policy's", "XC-EVICT-020", change("evict", to={"key": [1, 3]})),
    Mutation("budget overshot", "XC-RES-010", drop("evict")),
    Mutation("evicted without need", "XC-RES-008",
             insert({"op": "evict", "key": [0, 1], "ticket": 3}, "miss", after=True, key=[0, 2])),
    Mutation("evicted after a publication that needs no room", "XC-RES-008",
             insert({"op": "evict", "key": [0, 1]}, "publish", key=[0, 2], after=True)),
    Mutation("eviction that follows no cause", "XC-HIST-003", insert({"op": "evict", "key": [0, 1]}, "combine", 1)),
    Mutation("judgement away from its selection", "XC-HIST-003",
             insert({"op": "hit", "key": [0, 0], "ticket": 3}, "compute_end", 2)),
    Mutation("ticket used again", "XC-HIST-003", change("select", 2, to={"ticket": 2})),
    Mutation("ticket of an event that is over used again", "XC-HIST-003", renumbered(3, 2), partial(log, ahead=0)),
    Mutation("eviction for an event that never was", "XC-HIST-003", change("evict", to={"ticket": 99}),
             partial(log, room="trim")),
    Mutation("own load let go for another event", "XC-HIST-003", change("refuse", to={"ticket": 2}), letting_go),
    Mutation("event that does not fit", "XC-RES-012", header(budget={"slots": 1})),
    Mutation("capacity zero that keeps", "XC-RES-014", header(budget={"slots": 0})),
    Mutation("room that others hold", "XC-RES-024", header(budget={"slots": 3})),
    Mutation("shrink that is ignored", "XC-RES-011",
             lambda found: found.pop(place(found, "resize") + 1), managed),
    Mutation("trim that does not come", "XC-RES-025", drop("evict"), partial(log, room="trim")),
    Mutation("retain that keeps too much", "XC-RES-026", drop("evict"), partial(log, room="retain")),
    Mutation("event's own load let go though it is wanted", "XC-RES-026",
             insert({"op": "refuse", "key": [0, 1], "ticket": 1}, "release", after=True), partial(log, room="retain")),
    Mutation("event's own load let go while another event holds it", "XC-RES-005",
             both(moving("release", to=("read_start", {"read": 12})),
                  insert({"op": "refuse", "key": [0, 0], "ticket": 1}, "release", after=True)),
             partial(log, room="retain")),
    Mutation("event's own load kept beyond the budget", "XC-RES-026", drop("refuse"), letting_go),
    Mutation("event's own load evicted and let go", "XC-RES-026",
             insert({"op": "evict", "key": [0, 0], "ticket": 1}, "release", after=True), letting_go),
    Mutation("wave that is not resumed", "XC-HIST-011",
             lambda found: found.__delitem__(slice(place(found, "resume", 5), -1)),
             partial(log, slots=1, overflow="waves", ahead=0)),
    Mutation("wave that is too large", "XC-RES-013", change("miss", how="defer", to={"how": "refuse"}),
             partial(log, slots=1, overflow="waves", ahead=0)),
    Mutation("wave resumed twice", "XC-RES-013", change("resume", 1, to={"after": 1}),
             partial(log, slots=1, overflow="waves", ahead=0)),
    Mutation("wave resumed before the one before it has ended", "XC-RES-013",
             insert({"op": "resume", "ticket": 2, "after": 1}, "release"),
             partial(log, slots=1, overflow="waves", ahead=0)),
    Mutation("wave of an event that was given up", "XC-RES-013", change("release", to={"op": "abandon"}),
             partial(log, slots=1, overflow="waves", ahead=0)),
    # ------------------------------------------------------------------ lease, order, clock
    Mutation("lease ended before its work", "XC-RES-017", before("release", 0, "compute_end", 1)),
    Mutation("lease ended before its reads", "XC-RES-017",
             both(header(observes=["reads", "slots"]), before("release", 0, "publish", 1))),
    Mutation("lease ended before the read for its event alone", "XC-RES-017",
             both(header(observes=["reads", "slots"]),
                  drop("compute_start", key=[0, 1]), drop("compute_end", key=[0, 1]),
                  moving("read_end", read=5, to=("select", {"ticket": 2}))), bypassing),
    Mutation("released twice", "XC-RES-017", twice("release")),
    Mutation("released and never selected", "XC-RES-017", change("release", to={"ticket": 99})),
    Mutation("work after the release", "XC-RES-017", before("release", 0, "compute_start", 0)),
    Mutation("lost release", "XC-HIST-011", drop("release", -1)),
    Mutation("lost publication", "XC-HIST-008", drop("publish", -1)),
    Mutation("combined by arrival", "XC-HIST-009",
             lambda found: found[place(found, "combine")]["keys"].reverse()),
    Mutation("combined before all has executed", "XC-HIST-009", before("combine", 0, "compute_end", 1)),
    Mutation("result left out", "XC-HIST-009", lambda found: found[place(found, "combine", 1)]["keys"].pop()),
    Mutation("not combined", "XC-HIST-009", drop("combine")),
    Mutation("combined twice", "XC-HIST-009", twice("combine")),
    # ------------------------------------------------------------------ seeds, pins, prefetches, resets
    Mutation("seed counted present and read", "XC-RES-020", change("seed", 1, to={"how": "read"}), managed),
    Mutation("pin of what is absent", "XC-RES-018", change("pin", to={"key": [1, 5]}), managed),
    Mutation("unpin of what is not pinned", "XC-RES-019", twice("unpin"), managed),
    Mutation("prefetch of what is resident", "XC-RES-021", change("prefetch", to={"key": [0, 0]}), managed),
    Mutation("prefetch adopted before it is ready", "XC-HIST-010", drop("prefetch", state="ready"), managed),
    Mutation("prefetch late after it was adopted", "XC-HIST-010", twice("prefetch", state="late"), managed),
    Mutation("prefetch ready before it is read", "XC-HIST-010",
             lambda found: moved(found, place(found, "prefetch", state="ready"), place(found, "publish", key=[0, 4])),
             managed),
    Mutation("prefetch queued and lost", "XC-HIST-011",
             insert({"op": "prefetch", "state": "queued", "key": [0, 2]}, "select", 2)),
    Mutation("prefetch of what is resident queued", "XC-HIST-010",
             insert({"op": "prefetch", "state": "queued", "key": [0, 0]}, "select", 2)),
    Mutation("prefetch late and lost", "XC-HIST-011", drop("prefetch", state="adopted", key=[1, 2]), managed),
    Mutation("prefetch adopted in silence", "XC-HIST-011", drop("prefetch", state="adopted", key=[0, 4]), managed),
    Mutation("prefetch that an event waited for, not counted late", "XC-HIST-010",
             both(drop("prefetch", state="late"), change("prefetch", to={"state": "ready"}, state="adopted")), managed),
    Mutation("prefetch late though nobody waits", "XC-HIST-010",
             insert({"op": "prefetch", "state": "late", "key": [0, 4]}, "read_end", read=10), managed),
    Mutation("prefetch adopted though nobody asks", "XC-HIST-010",
             lambda found: moved(found, place(found, "prefetch", state="adopted", key=[0, 4]),
                                 place(found, "reset", scope="history")), managed),
    Mutation("prefetch fails that lies ready", "XC-HIST-010",
             change("prefetch", state="adopted", key=[0, 4], to={"state": "failed"}), managed),
    Mutation("prefetch fails whose record is still being read", "XC-HIST-010",
             both(change("prefetch", state="late", to={"state": "failed"}),
                  drop("prefetch", state="adopted", key=[1, 2])), managed),
    Mutation("prefetch discarded that lies ready", "XC-HIST-010",
             change("prefetch", state="adopted", key=[0, 4], to={"state": "discarded"}), managed),
    Mutation("prefetch discarded that an event waits for", "XC-HIST-010",
             both(change("prefetch", state="adopted", key=[1, 2], to={"state": "discarded"}),
                  moving("prefetch", state="discarded", to=("publish", {"key": [1, 2]}))), managed),
    Mutation("prefetch that an event found ready, not adopted", "XC-HIST-011",
             both(drop("prefetch", state="adopted", key=[0, 4]), drop("reset", scope="contents")), managed),
    Mutation("prefetch outside the cache ready for an event that reads by itself", "XC-HIST-011",
             drop("prefetch", state="discarded"), unneeded),
    Mutation("prefetch outside the cache taken by a miss that has read by itself", "XC-HIST-010",
             both(change("prefetch", state="discarded", to={"state": "adopted"}),
                  moving("prefetch", state="adopted", to=("publish", {"key": [0, 1]}))), unneeded),
    Mutation("prefetch outside the cache taken by a miss that begins to read by itself", "XC-HIST-010",
             both(*(drop(op, read=read) for op in ("read_start", "read_end") for read in (5, 6)),
                  change("read_start", read=4, to={"length": 0}), change("read_end", read=4, to={"length": 0}),
                  change("prefetch", state="discarded", to={"state": "adopted"}),
                  moving("prefetch", state="adopted", to=("read_end", {"read": 4}))), unneeded),
    # ------------------------------------------------------------------ what a prefetch displaces
    Mutation("guess evicts another than the policy's", POLICIES["lru"].rule,
             change("evict", key=[1, 0], to={"key": [1, 1]}), displacing),
    Mutation("guess that takes room which nobody gave", "XC-PREFETCH-008", drop("evict", key=[1, 0]), displacing),
    Mutation("guess evicts more than it needs", "XC-RES-008",
             insert({"op": "evict", "key": [1, 1]}, "evict", key=[1, 0], after=True), displacing),
    Mutation("guess evicts a key of the event that executes", "XC-RES-005",
             change("evict", key=[1, 0], to={"key": [0, 0]}), displacing),
    Mutation("guess evicts a record in flight", "XC-RES-005",
             both(lambda found: moved(found, place(found, "prefetch", key=[0, 3], state="ready"),
                                      place(found, "prefetch", key=[0, 4], state="ready")),
                  lambda found: moved(found, place(found, "publish", key=[0, 3]),
                                      place(found, "prefetch", key=[0, 4], state="ready") - 1),
                  change("evict", key=[1, 5], to={"key": [0, 3]})), displacing),
    Mutation("guess evicts for another event than its own", "XC-HIST-003",
             change("evict", key=[1, 0], to={"ticket": 2}), displacing),
    Mutation("guess evicts and names no event", "XC-RES-021",
             lambda found: found[place(found, "prefetch", state="reading")].pop("ticket"), displacing),
    Mutation("guess into free room evicts", "XC-HIST-003", insert({"op": "evict", "key": [0, 0]}, "prefetch",
             after=True), managed),
    Mutation("guess beside an event that is over", "XC-RES-017", change("prefetch", ticket=3, to={"ticket": 2}),
             displacing),
    Mutation("guess beside an event that never was", "XC-RES-017", change("prefetch", ticket=3, to={"ticket": 9}),
             displacing),
    Mutation("guess evicts when it is there", "XC-HIST-010", change("prefetch", state="ready", to={"ticket": 3}),
             displacing),
    Mutation("guess of what is resident evicts", "XC-RES-021", change("prefetch", ticket=3, to={"key": [0, 0]}),
             displacing),
    Mutation("guess outside the cache evicts", "XC-PREFETCH-007", header(prefetch="staging"), displacing),
    Mutation("guess displaced and not discarded", "XC-HIST-011", drop("prefetch", state="discarded"), displacing),
    Mutation("retry that is another event", "XC-TRACE-002", change("select", 1, to={"experts": [[0, 2]]}), managed),
    Mutation("retry of what has not failed", "XC-TRACE-002",
             change("select", 2, to={"layer": 0, "experts": [[0, 1]]}), managed),
    Mutation("seed that is never read", "XC-HIST-011",
             insert({"op": "seed", "key": [0, 3], "priority": 0, "how": "read"}, "end"), managed),
    Mutation("slot refilled after a rebind that changes nothing", "XC-HIST-007",
             both(insert({"op": "rebind", "fingerprint": ""}, "select", 3),
                  *(change("read_start", read=read, to={"slot": 4}) for read in (18, 19, 20)),
                  lambda found: found.__delitem__(slice(place(found, "select", 5), -1))), partial(log, ahead=0)),
    Mutation("contents reset under a lease", "XC-RES-022",
             insert({"op": "reset", "scope": "contents"}, "release", 1), managed),
    Mutation("another model under a lease", "XC-RES-023",
             insert({"op": "rebind", "fingerprint": "other"}, "release", 1), managed),
    Mutation("published after it has failed", "XC-RES-015",
             insert({"op": "publish", "key": [0, 1]}, "fail", after=True), managed),
    Mutation("sold as FIFO, is LRU", POLICIES["fifo"].rule, header(policy={"name": "fifo", "parameters": {}})),
]  # fmt: skip


@pytest.mark.rule("XC-HIST-003", "XC-HIST-004", "XC-HIST-005", "XC-HIST-006", "XC-HIST-007", "XC-HIST-008",
                  "XC-HIST-009", "XC-HIST-010", "XC-HIST-011", "XC-HIST-012")  # fmt: skip
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_spoiled_log_is_illegal_by_its_rule(mutation: Mutation) -> None:
    legal = mutation.log()
    assert verdict(legal).answer == "legal"
    spoiled = mutation.log()
    mutation.spoil(spoiled)
    found = verdict(counted(spoiled))
    assert (found.answer, found.rule) == ("illegal", mutation.rule), found
    assert found.line is not None
    assert found.witness[-1:] == (found.line,) or found.line in found.witness
    assert 1 <= len(found.witness) <= 5
    assert all(2 <= line <= len(spoiled) for line in found.witness)


@pytest.mark.rule("XC-HIST-001")
@pytest.mark.parametrize("threads", [(0, 0), (0, 1)])
def test_a_clock_that_goes_back_is_illegal_on_any_thread(threads: tuple[int, int]) -> None:
    found = log()
    for record, thread in zip(found[40:42], threads, strict=True):
        record["thread"] = thread
    found[41]["clock"] = found[40]["clock"] - 1
    told = verdict(found)
    assert (told.rule, told.line, told.witness) == ("XC-HIST-001", 42, (41, 42))
    found[41]["clock"] = found[40]["clock"]  # at the same time is no order
    assert verdict(found).answer == "legal"


@pytest.mark.rule("XC-FANOUT-005")
def test_a_read_that_delivers_something_else_is_told_with_both_runs() -> None:
    found = log()
    found[place(found, "read_end", read=5)]["offset"] += 1
    assert verdict(found).what == "32768 bytes from 65537 were delivered, 32768 from 65536 were asked for"


@pytest.mark.rule("XC-RES-005", "XC-RES-019")
def test_the_witness_names_no_pin_that_has_ended() -> None:
    found = managed()
    where = place(found, "hit", key=[0, 0], ticket=4)
    found.insert(where + 1, {"op": "evict", "key": [0, 0], "clock": 0, "thread": 0})
    told = verdict(counted(found))
    assert told.rule == "XC-RES-005"
    assert "pin" not in [found[line - 1]["op"] for line in told.witness]


@pytest.mark.rule("XC-HIST-005", "XC-HIST-007", "XC-HIST-008")
def test_the_witness_is_the_lines_that_the_rule_is_about() -> None:
    found = log()
    found[place(found, "evict")]["key"] = [1, 3]
    told = verdict(found)
    said = [(found[line - 1]["op"], found[line - 1].get("key")) for line in told.witness]
    # The last touch of the policy's victim, the later one of the log's, the selection, the eviction.
    assert said == [("miss", [0, 1]), ("miss", [1, 3]), ("select", None), ("evict", [1, 3])]
    found = log()
    found[place(found, "read_start", read=15)]["slot"] = 0
    told = verdict(found)
    assert [found[line - 1]["op"] for line in told.witness] == ["publish", "select", "read_start"]


@pytest.mark.rule("XC-RES-005", "XC-RES-008", "XC-RES-010")
@pytest.mark.parametrize("policy", [None, {"name": "belady", "parameters": {}}, {"name": "nobody's", "parameters": {}}])
def test_room_and_protection_are_judged_without_a_known_policy(policy: object) -> None:
    for name in ("victim leased by its own event", "budget overshot", "evicted without need", "shrink that is ignored",
                 "trim that does not come", "retain that keeps too much", "miss that fits is kept out",
                 "guess that takes room which nobody gave", "guess evicts more than it needs",
                 "guess evicts a key of the event that executes", "guess evicts and names no event"):  # fmt: skip
        mutation = next(each for each in MUTATIONS if each.name == name)
        spoiled = mutation.log()
        spoiled[0]["policy"] = policy
        assert verdict(spoiled).answer == "unknown"
        mutation.spoil(spoiled)
        found = verdict(counted(spoiled))
        if name == "miss that fits is kept out":
            assert found.rule == "XC-RES-028"
        else:
            assert (found.answer, found.rule) == ("illegal", mutation.rule), name


def test_the_mutations_are_many_kinds() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= 75
    assert len({mutation.rule for mutation in MUTATIONS}) >= 30
