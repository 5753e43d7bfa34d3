"""The coach: off unless it is switched on; then it finds the strategy that does better, and tells how sure it is."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.te.coach import bar, interval, mean
from llm_do_mcp.te.settings import Settings
from llm_do_mcp.te.strategies import STRATEGIES, choose, scores
from tests.te.searching import search, te, write

EVENTS_TO_CONVERGE = 200


def pair(number: int, command: str, strategy: str, action: str) -> list[dict[str, Any]]:
    """A command that was answered by a strategy, and what the next command showed about it."""
    about = {"id": str(number), "session_id": "s", "cmd": command, "arguments": [command], "mode": "enriched"}
    return [
        {"event": "command", **about, "strategy": strategy},
        {"event": "next_action", "of": str(number), "action": action},
    ]


def simulated(seed: int, events: int) -> list[str]:
    """What is chosen when one of two strategies is followed by the actual task more often, 7 times of 10 against 5."""
    chance, told, chosen = random.Random(seed), list[dict[str, Any]](), list[str]()
    for number in range(events):
        scored = {name: values for (_, name), values in scores(told).items()}
        name = choose(["worse", "better"], scored, 0.2, chance)
        chosen.append(name)
        action = "proceeds" if chance.random() < (0.7 if name == "better" else 0.5) else "repeats"
        told.extend(pair(number, "grep", name, action))
    return chosen


@pytest.mark.proves("TE-COACH")
def test_it_converges_on_the_better_of_two_strategies() -> None:
    runs = [simulated(seed, EVENTS_TO_CONVERGE) for seed in range(40)]
    last = [chosen[-50:].count("better") for chosen in runs]
    assert sum(count >= 35 for count in last) >= 32, "in four of five runs, most choices after 150 events"
    early = [chosen[:20].count("better") for chosen in runs]
    assert sum(last) / 50 > sum(early) / 20, "it has learned"
    assert all("worse" in chosen[-50:] for chosen in runs), "it still looks"
    assert simulated(1, 60) == simulated(1, 60)


@pytest.mark.proves("TE-COACH")
def test_it_is_off_unless_it_is_switched_on_and_repeats_itself_with_a_seed(tmp_path: Path) -> None:
    tree = write(tmp_path, {f"f{n}.py": "needle = 1\n" * 50 for n in range(9)})
    path = tree / ".llmc" / "te_telemetry.jsonl"

    def strategies(**coach: Any) -> list[str | None]:
        path.unlink(missing_ok=True)
        for number in range(12):
            settings = Settings({"coach": coach}, str(tree))
            answer = search(f"te grep needle f{number % 9}.py", tree, guard="none", settings=settings)
            if coach.get("enabled"):
                event = json.loads(path.read_text().splitlines()[-1])
                style = STRATEGIES["grep"][event["strategy"]]
                assert len(answer.hits) == (style.preview or 50)
        told = map(json.loads, path.read_text().splitlines())
        return [event["strategy"] for event in told if event["event"] == "command"]

    assert strategies() == [None] * 12
    first = strategies(enabled=True, seed=3)
    assert first == strategies(enabled=True, seed=3)
    assert strategies(enabled=True, seed=0) == strategies(enabled=True, seed=0)
    assert len(set(first)) > 1 and set(first) <= set(STRATEGIES["grep"])


@pytest.mark.proves("TE-COACH-REPORT")
def test_the_report_tells_wins_intervals_and_bars(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []
    for number in range(40):
        name = "short" if number % 2 else "full"
        action = "repeats" if name == "full" and number % 3 else "proceeds"
        told.extend(pair(number, "grep", name, action))
    told.extend(event for number in range(40, 44) for event in pair(number, "cat", "full", "proceeds"))
    told.append({"event": "command", "id": "45", "cmd": "find", "strategy": "full"})  # no event of ours
    lines = "".join(json.dumps(event) + "\n" for event in told)
    write(tmp_path, {"llmc.toml": "[tool_envelope]\n", ".llmc/te_telemetry.jsonl": lines})
    ran = te("coach", "report", folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, b"")
    header, cat, short, full = ran.stdout.decode().splitlines()[3:]
    assert header.split()[:5] == ["command", "strategy", "scored", "wins", "mean"]
    assert cat.split() == ["cat", "full", "4", "4", "too", "few"]
    sure = f"{interval([2] * 20)[0]:+.2f}"
    assert short.split() == ["grep", "short", "20", "20", "+2.00", sure, "to", "+2.00", bar(2)]
    values = [2] * 7 + [-1] * 13
    low, high = interval(values)
    assert full.split() == ["grep", "full", "20", "7", "+0.05", f"{low:+.2f}", "to", f"{high:+.2f}", bar(mean(values))]
    assert -1 < low < mean(values) < high < 1
    for budget in (250, 350):
        settings = Settings({}, str(tmp_path))
        cut = search("te coach report", tmp_path, guard="none", budget=budget, settings=settings)
        assert cut.left_out == 4 - len(cut.hits) > 0


@pytest.mark.proves("TE-COACH-REPORT")
def test_a_report_without_a_log_says_how_to_keep_one(tmp_path: Path) -> None:
    ran = te("coach", "report", folder=tmp_path)
    assert ran.returncode == 2 and b'"error":"no_telemetry"' in ran.stdout
    assert b'"error":"usage"' in te("coach", folder=tmp_path).stdout


@pytest.mark.proves("TE-COACH-REPORT")
def test_an_interval_holds_the_mean_about_nineteen_times_of_twenty() -> None:
    chance = random.Random(5)
    held = 0
    for _ in range(400):
        low, high = interval([2 if chance.random() < 0.6 else -1 for _ in range(60)])
        held += low <= 0.6 * 2 - 0.4 <= high
    assert 0.91 < held / 400 < 0.98
    for value in (-2, 2):
        few, many = interval([value] * 5), interval([value] * 500)
        assert few[0] <= value <= few[1] and few[1] - few[0] > 1, "equal values are no certainty"
        assert many[0] <= value <= many[1] and many[1] - many[0] < 0.1
    assert (bar(-2), bar(2)) == ("░" * 20, "█" * 20)
