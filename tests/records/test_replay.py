from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from kept_records import Counted

from router.config.load import LoadedPolicy, parse_policy
from router.extproc.head import RequestHead
from router.extproc.house import move_in
from router.extproc.telling.desk import Desk
from router.extproc.telling.teller import Teller
from router.policy.model import Policy
from router.records.basis import StoredBasis, stored_basis
from router.records.redecide import Redecider
from router.records.replay import Replay, replay
from router.records.replay_page import render
from router.records.sqlite_store import StoreReader
from router.records.store import Filter
from router.records.writer import RecordWriter

BASE = """\
version: 1
upstreams:
  - {model: a, cluster: x, price: {input_per_million: 1, output_per_million: 1}}
  - {model: b, cluster: y, price: {input_per_million: 2, output_per_million: 2}}
  - {model: seeing, cluster: z, modalities: [text, image]}
default_model: a
records: {path: r.sqlite}
signals:
  keyword: {trains: {any: [railway]}, proofs: {any: [proof]}}
decisions:
  - {name: rail, priority: 3, when: {keyword: trains}, route: {models: [b, a]}}
  - {name: math, priority: 2, when: {keyword: proofs}, respond: {message: "No."}}
"""
TEXTS = ["a railway", "a proof", "hello", "a railway proof"]


def load(folder: Path, text: str) -> LoadedPolicy:
    return parse_policy(text.encode(), folder / "policy.yaml")


async def serve(loaded: LoadedPolicy, bodies: list[dict[str, object]], counted: Counted, head: RequestHead) -> None:
    writer = RecordWriter(counted.counter, pause=0.01)
    teller = Teller((), counted.counter)
    teller.start()
    house = await move_in(loaded, 1, records=writer, desk=Desk(teller))
    for body in bodies:
        await house.pipeline.judge(head, json.dumps(body).encode())
    teller.close()
    await asyncio.to_thread(writer.close)
    house.close()
    assert counted.dropped() == {}


CHAT = RequestHead("POST", "/v1/chat/completions", {})


def keep(
    folder: Path, text: str, texts: list[str], model: str = "any", head: RequestHead = CHAT, **more: object
) -> None:
    counted = Counted()
    bodies: list[dict[str, object]] = [
        {"model": model, "messages": [{"role": "user", "content": one}], **more} for one in texts
    ]
    asyncio.run(serve(load(folder, text), bodies, counted, head))
    counted.close()


def try_policy(folder: Path, text: str) -> Replay:
    new = load(folder, text)

    def policy_of(basis: StoredBasis) -> Policy:
        return parse_policy(basis.text, folder / "policy.yaml").policy

    with StoreReader(folder / "r.sqlite") as reader:
        redecider = Redecider(new.policy, stored_basis(new, {}))
        return replay(reader.newest(Filter()), reader.basis, policy_of, redecider)


def changes(came: Replay) -> dict[str, int]:
    return {f"{old} => {new}": tally.count for (old, new), tally in came.changes.items()}


def test_the_policy_that_served_changes_nothing(tmp_path: Path) -> None:
    keep(tmp_path, BASE, TEXTS)
    came = try_policy(tmp_path, BASE)
    assert (came.records, came.changed, came.undecidable, came.unchanged) == (4, 0, 0, 4)


def test_another_order_of_decisions_moves_those_that_both_match(tmp_path: Path) -> None:
    keep(tmp_path, BASE, TEXTS * 2)
    came = try_policy(tmp_path, BASE.replace("priority: 2", "priority: 9"))
    assert changes(came) == {"rail → b => math → refuse": 2}
    [tally] = came.changes.values()
    assert len(tally.examples) == 2
    assert (came.unchanged, came.undecidable) == (6, 0)


def test_a_decision_that_is_gone_leaves_its_requests_to_the_next_or_to_nobody(tmp_path: Path) -> None:
    keep(tmp_path, BASE, TEXTS)
    came = try_policy(tmp_path, BASE.replace("  - {name: rail, priority: 3", "  - {name: gone, priority: 1"))
    assert changes(came) == {"rail → b => gone → b": 1, "rail → b => math → refuse": 1}


def test_a_signal_with_other_words_is_another_signal(tmp_path: Path) -> None:
    keep(tmp_path, BASE, TEXTS)
    came = try_policy(tmp_path, BASE.replace("any: [proof]", "any: [proof, lemma]"))
    # Those that `rail` takes never depended on it.
    assert (came.changed, came.unchanged, came.undecidable) == (0, 2, 2)
    assert {name: tally.count for name, tally in came.missing.items()} == {"keyword/proofs": 2}


def test_another_bound_of_a_count_is_tried_on_the_count_of_then(tmp_path: Path) -> None:
    counting = BASE.replace("  keyword: {trains", "  context: {long: {min_tokens: 3}}\n  keyword: {trains").replace(
        "when: {keyword: trains}", "when: {context: long}"
    )
    keep(tmp_path, counting, ["one two three four", "word " * 40])
    came = try_policy(tmp_path, counting.replace("min_tokens: 3", "min_tokens: 30"))
    assert (changes(came), came.undecidable) == ({"rail → b => default → a": 1}, 0)
    unbounded = try_policy(tmp_path, counting.replace("min_tokens: 3", "max_tokens: 30"))
    assert (changes(unbounded), unbounded.undecidable) == ({"rail → b => default → a": 1}, 0)


def test_a_file_that_a_signal_reads_is_part_of_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("one")
    policy = load(tmp_path, BASE.replace("[proof]", "[lines.txt]"))
    before = stored_basis(policy, {}).definitions
    (tmp_path / "lines.txt").write_text("two")
    after = stored_basis(policy, {}).definitions
    assert {name for name in before if before[name] != after[name]} == {"keyword/proofs"}


def test_a_signal_that_was_not_asked_is_missing_only_where_it_could_change_something(tmp_path: Path) -> None:
    keep(tmp_path, BASE, TEXTS)
    more = BASE.replace("proofs: {any: [proof]}", "proofs: {any: [proof]}, new: {any: [hello]}")
    came = try_policy(tmp_path, more + "  - {name: fresh, priority: 1, when: {keyword: new}, route: {models: [b]}}\n")
    # Whatever a decision of higher priority takes, the new one cannot.
    assert (came.unchanged, came.undecidable, list(came.missing)) == (3, 1, ["keyword/new"])


def test_another_way_to_select_moves_the_model_where_the_record_can_tell(tmp_path: Path) -> None:
    keep(tmp_path, BASE, TEXTS)
    assert changes(try_policy(tmp_path, BASE.replace("[b, a]", "[b, a], select: cheapest"))) == {
        "rail → b => rail → a": 2
    }
    assert changes(try_policy(tmp_path, BASE.replace("models: [b, a]", "models: [a]"))) == {"rail → b => rail → a": 2}
    learnt = try_policy(tmp_path, BASE.replace("[b, a]", "[b, a], select: bandit"))
    assert (learnt.changed, learnt.undecidable, list(learnt.missing)) == (0, 2, ["selection: bandit"])
    gone = try_policy(tmp_path, BASE.replace("[b, a]", "[a, seeing], select: bandit"))
    assert changes(gone) == {"rail → b => rail → a | seeing": 2}


def test_a_choice_by_weight_is_made_again_from_its_key(tmp_path: Path) -> None:
    weighted = BASE.replace("[b, a]", "[b, a], select: {weighted: {weights: {a: 1, b: 1}}}")
    keep(tmp_path, weighted, [f"railway {n}" for n in range(40)])
    assert try_policy(tmp_path, weighted).changed == 0
    all_to_a = try_policy(tmp_path, weighted.replace("b: 1}", "b: 0.000001}"))
    assert all_to_a.undecidable == 0
    assert 0 < all_to_a.changed < 40
    assert set(changes(all_to_a)) == {"rail → b => rail → a"}


def test_an_upstream_that_can_no_longer_take_a_request_is_not_chosen(tmp_path: Path) -> None:
    keep(tmp_path, BASE, TEXTS, max_tokens=5000)
    narrow = BASE.replace("{model: b, cluster: y,", "{model: b, cluster: y, context_tokens: 100,")
    assert changes(try_policy(tmp_path, narrow)) == {"rail → b => rail → a": 2}
    nobody = narrow.replace("{model: a, cluster: x,", "{model: a, cluster: x, context_tokens: 100,")
    assert changes(try_policy(tmp_path, nobody)) == {
        "rail → b => rail → no_capable_model": 2,
        "default → a => default → no_capable_model": 1,
    }


def test_a_request_that_was_answered_has_no_needs_and_its_route_names_all_candidates(tmp_path: Path) -> None:
    keep(tmp_path, BASE, ["a proof"])
    came = try_policy(tmp_path, BASE.replace('respond: {message: "No."}', "route: {models: [a, b]}"))
    assert changes(came) == {"math → refuse => math → a | b": 1}


@pytest.mark.parametrize(("named", "known"), [("a", True), ("fresh", False)])
def test_a_model_that_the_old_policy_did_not_know_may_have_been_named(tmp_path: Path, named: str, known: bool) -> None:
    keep(tmp_path, BASE, ["a railway"], model=named)
    respecting = BASE + "respect_requested_model: true\n"
    same_models = try_policy(tmp_path, respecting)
    assert changes(same_models) == ({"rail → b => default → a": 1} if known else {})
    more = respecting.replace("default_model: a", "  - {model: fresh, cluster: f}\ndefault_model: a")
    came = try_policy(tmp_path, more)
    assert list(came.missing) == ([] if known else ["requested model"])


def test_profiles_are_known_where_they_are_given_as_before(tmp_path: Path) -> None:
    profile = "profiles:\n  - {name: p, models: [virtual], decisions: [DECISION]}\n"
    rail = "{name: p-rail, when: {keyword: trains}, route: {models: [a]}}"
    old = BASE + profile.replace("DECISION", rail)
    keep(tmp_path, old, ["a railway"], model="virtual")
    assert try_policy(tmp_path, old).unchanged == 1
    renamed = try_policy(tmp_path, old.replace("name: p,", "name: q,").replace("p-rail", "q-rail"))
    assert changes(renamed) == {"p-rail → a => q-rail → a": 1}
    assert list(try_policy(tmp_path, old.replace("[virtual]", "[virtual, other]")).missing) == ["profile"]
    assert changes(try_policy(tmp_path, BASE)) == {"p-rail → a => rail → b": 1}


def test_other_paths_make_other_requests_of_them(tmp_path: Path) -> None:
    keep(tmp_path, BASE, TEXTS)
    came = try_policy(tmp_path, BASE + "apis: [{path: /x, api: openai.chat}]\n")
    assert (came.undecidable, list(came.missing)) == (4, ["apis"])


def test_a_name_that_comes_from_another_place_makes_another_signal(tmp_path: Path) -> None:
    policy = BASE.replace(
        "  keyword: {trains", "  header: {team: {name: x-team, any: [blue]}}\n  keyword: {trains"
    ).replace("when: {keyword: trains}", "when: {header: team}")
    head = RequestHead("POST", "/v1/chat/completions", {"x-team": "blue"})
    keep(tmp_path, policy + "trusted_headers: [x-team]\n", ["hello"], head=head)
    assert try_policy(tmp_path, policy + "trusted_headers: [x-team]\n").unchanged == 1
    moved = try_policy(tmp_path, policy + "trusted_metadata: {x-team: 'a:b'}\n")
    assert list(moved.missing) == ["header/team"]


CANARY = "zanzibarite"


def test_nothing_that_a_client_wrote_is_in_the_store(tmp_path: Path) -> None:
    policy = BASE + "trusted_headers: [x-team]\n"
    head = RequestHead("POST", "/v1/chat/completions", {"x-team": CANARY, "x-other": CANARY})
    body: dict[str, object] = {
        "model": CANARY,
        "user": CANARY,
        "metadata": {CANARY: CANARY},
        "messages": [
            {"role": "system", "content": f"{CANARY} railway"},
            {
                "role": "user",
                "name": CANARY,
                "content": [
                    {"type": "text", "text": f"{CANARY} proof railway {CANARY}"},
                    {"type": "image_url", "image_url": {"url": f"https://{CANARY}.example/{CANARY}.png"}},
                    {
                        "type": "file",
                        "file": {"filename": f"{CANARY}.pdf", "file_data": "data:application/pdf;base64,eA=="},
                    },
                ],
            },
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": CANARY, "type": "function", "function": {"name": CANARY, "arguments": f'{{"{CANARY}": 1}}'}}
                ],
            },
            {"role": "tool", "tool_call_id": CANARY, "content": f"{CANARY} railway"},
        ],
        "tools": [{"type": "function", "function": {"name": CANARY, "parameters": {CANARY: CANARY}}}],
    }
    counted = Counted()
    asyncio.run(serve(load(tmp_path, policy), [body], counted, head))
    counted.close()
    with StoreReader(tmp_path / "r.sqlite") as reader:
        [(stored, _)] = reader.newest(Filter())
    assert stored.turns == 4
    for file in tmp_path.iterdir():
        assert CANARY.encode() not in file.read_bytes()


def test_the_page_shows_what_changes_and_fetches_nothing(tmp_path: Path) -> None:
    keep(tmp_path, BASE, TEXTS)
    came = try_policy(tmp_path, BASE.replace("priority: 2", "priority: 9").replace("any: [railway]", "any: [trains]"))
    page = render(came, "<new>.yaml")
    assert "&lt;new&gt;.yaml" in page
    assert "keyword/trains" in page
    assert "http" not in page
    assert "<script" not in page
