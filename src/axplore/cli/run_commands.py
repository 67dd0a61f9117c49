"""Commands about a run: `verify`, `diff`, `report`, `watch`, `validate`, `certify`, `state` and more."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from axplore.cli.console import (
    CLAIM_FAILED,
    DONE,
    EXPORTS,
    ActionNames,
    AsJson,
    Delta,
    Describe,
    RunFolder,
    Settings,
    Trust,
    app,
    evidence_bars,
    parsed,
    print_json,
    print_lines,
    print_table,
    with_consent,
)
from axplore.errors import ExitCode, InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from axplore.atlas import Atlas
    from axplore.atlas.plans import Plan
    from axplore.certificate import EpisodeCertificate
    from axplore.records.findings import Finding
    from axplore.types import State

CERTIFIED: Final = "certified-{}.json"
"""The file in a run that holds what `certify` has decided about a goal."""


@app.command()
def verify(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of a run, or a file that certify wrote.", show_default=False)
    ],
    complete: Annotated[
        bool, typer.Option("--complete", help="Reject a run with anything left to prove (exit code 1).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check every claim of a run, or of a file of certify, from its counts alone, sharing no code with the explorer.

    \b
    Example:
      axplore verify runs/confusing-chain-1 --complete
    \b
    Exit codes:
      0  every claim follows from the counts, and nothing is left to prove
      1  some claim does not, or the run is contradicted
      2  the run is missing, damaged, or has nothing to verify
      3  every claim follows, but some states are open
      4  every claim follows, but the run is in doubt: see docs/verdicts.md
    """  # noqa: D301
    from axplore.atlas import Atlas
    from axplore.atlas.verification import verify as verify_run
    from axplore.certificate import EpisodeCertificate

    subject = EpisodeCertificate.load(run) if run.is_file() else Atlas.load(run)
    verification = verify_run(subject)
    if complete:
        verification = verification.requiring_completeness()
    if as_json:
        claims = [
            {"kind": claim.kind, "subject": claim.subject, "holds": claim.holds, "why": claim.why}
            for claim in verification.claims
        ]
        outcome = {"holds": verification.holds, "complete": verification.complete, "claims": claims}
        verdict = subject.verdict.as_json() if isinstance(subject, Atlas) and verification.holds else None
        print_json({"run": str(run), **outcome, "verdict": verdict, "exit_code": int(verification.exit_code)})
    else:
        print_lines(str(verification).splitlines())
    raise typer.Exit(int(verification.exit_code))


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Folder of the earlier run.", show_default=False)],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Folder of the later run.", show_default=False)],
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with both maps, too.", show_default="none")
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="CHANGE",
            help="Exit with 1 for: lost, slower, rows, any, or worse.",
            show_default="worse",
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of all changed actions together.")] = 0.99,
    form: Annotated[str, typer.Option("--format", help="text, json, markdown or junit.")] = "text",
    as_json: AsJson = False,
) -> None:
    """Show what changed between two runs: states gained and lost, slower and faster ways, actions that changed.

    \b
    Examples:
      axplore diff runs/build-41 runs/build-42 --page changes.html
      axplore diff runs/build-41 runs/build-42 --format markdown --fail-on lost --fail-on rows
    \b
    Exit codes:
      0  nothing of what --fail-on names is proven
      1  a state is proven lost, a way slower, or an action to lead less often where ways went
      2  a run is missing or damaged
      3  a state within the radius is missing without a proof that it is lost, or a run has open states
      4  as 0, but a run is in doubt: see docs/verdicts.md
    """  # noqa: D301
    from axplore.atlas import Atlas
    from axplore.atlas.difference import failures_named
    from axplore.report.difference_text import FORMATS, junit_of, markdown_of, table_of

    failing = failures_named(fail_on or ["worse"])
    form = "json" if as_json else form
    if form not in FORMATS:
        raise UnknownNameError.of("format", form, FORMATS)
    difference = Atlas.load(old).diff(Atlas.load(new), confidence)
    code = difference.exit_code_for(failing)
    written = None
    if page is not None:
        from axplore.report.side_by_side import write_difference_page

        written = write_difference_page(difference, page)
    match form:
        case "json":
            print_json({"runs": [str(old), str(new)], **difference.as_json(), "exit_code": int(code)})
        case "markdown":
            typer.echo(markdown_of(difference, str(old), str(new)))
        case "junit":
            typer.echo(junit_of(difference, failing, str(new)))
        case _:
            rows = table_of(difference)
            if rows:
                print_table(f"From {old} to {new}", ("what", "change", "what is proven"), rows)
            print_lines(difference.summary)
            if written is not None:
                print_lines([f"See it: {written}"])
    raise typer.Exit(int(code))


@app.command()
def report(
    run: RunFolder,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="File to write.", show_default="RUN/report.html")
    ] = None,
    describe: Describe = None,
    action_names: ActionNames = None,
    render: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION", help="Pictures of states: the function gets a label.", show_default="none"
        ),
    ] = None,
    pictures: Annotated[
        bool, typer.Option("--pictures", help="Start the world again, and let it draw its states.")
    ] = False,
    trust: Trust = False,
) -> None:
    """Write the page of a run: one file that opens offline.

    \b
    Examples:
      axplore report runs/confusing-chain-1 -o chain.html
      axplore report runs/lake --pictures --trust
    """  # noqa: D301
    from axplore.report import write_report
    from axplore.worlds.catalogue import function_named

    options = {"describe": describe, "action_names": action_names, "render": render}
    named: dict[str, Any] = {name: function_named(value) for name, value in options.items() if value is not None}
    written = with_consent(trust, lambda trust: write_report(run, out, pictures=pictures, trust=trust, **named))
    print_lines([str(written)])


@app.command()
def watch(
    run: RunFolder,
    port: Annotated[int, typer.Option(help="Port on this machine.", show_default="any free port")] = 0,
) -> None:
    """Serve the page of a run while it is in progress, on this machine only.

    It only reads: the run is not affected.
    """
    from axplore.report.watching import WatchServer

    with WatchServer(run, port) as server:
        print_lines([f"Watching {run} at {server.address} on this machine only. Ctrl-C stops watching."])
        with suppress(KeyboardInterrupt):
            server.serve_forever()


@app.command()
def validate(
    run: RunFolder,
    world: Annotated[
        str | None,
        typer.Option(metavar="WORLD", help="World to run them on.", show_default="the world of the run"),
    ] = None,
    episodes: Annotated[int, typer.Option(help="Number of episodes for each goal.")] = 100,
    horizon: Annotated[
        int | None,
        typer.Option(help="Steps after which an episode is cut.", show_default="20 times the upper bound"),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Seed of the noise. It must differ from that of the run, or the noise is the same.")
    ] = 1,
    settings: Settings = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Run the policies of a run on the real system and compare their steps with the bounds.

    Every draw is compared with what is assumed and counted. What contradicts that is kept in the run, and changes its
    verdict, if it is the world of the run.

    \b
    Example:
      axplore validate runs/confusing-chain-1 --episodes 1000
    \b
    Exit codes:
      0  nothing contradicts the bounds
      1  something does
      2  the run or the world is missing, or the world is not the one that was explored
    """  # noqa: D301
    from axplore.atlas import Atlas
    from axplore.atlas.validation import HEADINGS, validation_as_json
    from axplore.exploring import world_from
    from axplore.worlds.catalogue import check_consent

    atlas = Atlas.load(run)
    if world is None:
        with_consent(trust, lambda trust: check_consent(atlas.world, trust))
    parameters = parsed(settings)
    system, name = world_from(world or atlas.world, seed, parameters)
    with system:
        validation = atlas.validate(system, episodes=episodes, horizon=horizon)
    kept = _keep_findings(run, atlas, world, parameters, validation.findings)
    if as_json:
        print_json({"run": str(run), "world": name, **validation_as_json(validation)})
    else:
        print_table(f"Policies of {run} on {name}", HEADINGS, validation.rows())
        print_lines([validation.summary(), *kept])
    raise typer.Exit(DONE if validation.holds else CLAIM_FAILED)


@app.command()
def certify(
    run: RunFolder,
    goal: Annotated[str, typer.Argument(metavar="GOAL", help="State, such as s5 or (1,2).", show_default=False)],
    within: Annotated[
        float | None,
        typer.Option(metavar="B", help="Bound of the expected steps.", show_default="radius + ε, unless --chance"),
    ] = None,
    chance: Annotated[
        float | None, typer.Option(metavar="P", help="Bound of the chance to arrive within --steps.")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(metavar="N", help="Steps after which an episode ends.", show_default="4 times --within"),
    ] = None,
    restarts: Annotated[
        bool,
        typer.Option(
            "--restarts", help="Go on with a RESET, which is one step, where an episode ends before the goal."
        ),
    ] = False,
    delta: Delta = 0.05,
    max_steps: Annotated[int, typer.Option(help="The most steps.")] = 1_000_000,
    max_seconds: Annotated[
        float | None, typer.Option(help="Begin no step after this many seconds.", show_default="no limit")
    ] = None,
    world: Annotated[
        str | None, typer.Option(metavar="WORLD", help="World to play on.", show_default="the world of the run")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Seed of the noise. It must differ from that of the run, or the noise is the same.")
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FILE", help="File to write.", show_default="RUN/certified-GOAL.json"),
    ] = None,
    settings: Settings = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Prove or refute by episodes, without any model, that the policy to a state arrives in time.

    Nothing is assumed about labels: all that is needed is that episodes are independent of each other and alike. It
    stops as soon as it is decided either way, and writes a certificate that `axplore verify FILE` checks.

    An episode ends at the first RESET after its start: in a terminal state, before a limit of the system, or where the
    policy plays it. It has missed the goal then. With --restarts, RESET is a step of the policy, as the atlas has it.

    \b
    Examples:
      axplore certify runs/confusing-chain-1 s5 --within 4.6
      axplore certify runs/confusing-chain-1 s5 --chance 0.9 --steps 12 --restarts
    \b
    Exit codes:
      0  proven
      1  refuted
      2  the run or the world is missing, or the policy does not fit the world
      3  undecided after --max-steps, or an episode ended that --restarts would continue
    """  # noqa: D301
    from axplore.atlas import Atlas
    from axplore.atlas.certification import certify as certify_policy
    from axplore.certificate import Decision
    from axplore.exploring import world_from
    from axplore.labels import named
    from axplore.worlds.catalogue import check_consent

    atlas = Atlas.load(run)
    target = named(atlas.states, goal, "state of the atlas")
    if within is None and chance is None:
        within = atlas.target.radius + atlas.target.epsilon
    if world is None:
        with_consent(trust, lambda trust: check_consent(atlas.world, trust))
    parameters = parsed(settings)
    system, name = world_from(world or atlas.world, seed, parameters)
    with system, evidence_bars() as show:
        certificate = certify_policy(
            atlas, system, target, within=within, chance=chance, steps=steps, restarts=restarts, delta=delta,
            max_steps=max_steps,
            max_seconds=max_seconds,
            on_progress=lambda progress: show(progress.evidence_for, progress.evidence_against),
        )  # fmt: skip
    certificate = replace(certificate, world=name)
    file = out or run / CERTIFIED.format(_file_part(goal))
    certificate.save(file)
    kept = _keep_findings(run, atlas, world, parameters, certificate.findings)
    if as_json:
        print_json({"run": str(run), "file": str(file), **certificate.as_json()})
    else:
        print_lines([str(certificate), f"Written to {file}.", *kept])
    code = {Decision.PROVEN: DONE, Decision.REFUTED: CLAIM_FAILED, Decision.UNDECIDED: ExitCode.UNFINISHED}
    raise typer.Exit(code[certificate.decision])


def _keep_findings(
    run: Path, atlas: Atlas, world: str | None, parameters: dict[str, str], findings: tuple[Finding, ...]
) -> list[str]:
    """Keeps in a run what play has shown of its system, and returns what may be said of it now.

    What it has shown of another system says nothing of the run.
    """
    from axplore.runs.folder import keep_findings
    from axplore.runs.manifest import NAME, load_manifest
    from axplore.worlds.catalogue import read_parameters

    if not findings or world not in (None, atlas.world) or not (run / NAME).is_file():
        return []
    if read_parameters(parameters) != read_parameters(load_manifest(run).world_parameters):
        return []
    return [f"Kept in {run}. {keep_findings(run, findings).verdict.headline}"]


@app.command()
def state(
    run: RunFolder,
    label: Annotated[str, typer.Argument(metavar="STATE", help="State, such as s5 or (1,2).", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Show what a run says of one state: its status and bounds, why, and what holds even if rows are wrong.

    \b
    Example:
      axplore state runs/confusing-chain-1 s5
    \b
    Exit codes:
      0  shown, whatever its status
      2  an argument is wrong, or the run is damaged
    """  # noqa: D301
    from axplore.atlas import Atlas
    from axplore.labels import encode_label, finite, named, readable

    atlas = Atlas.load(run)
    chosen = named(atlas.seen, label, "state that was seen")
    report, survives = atlas.describe(chosen), atlas.break_even(chosen)
    certified = _certified_in(run, chosen)
    if as_json:
        bounds = {name: finite(getattr(report.bounds, name)) for name in ("lower", "upper", "regret")}
        shown = {"state": encode_label(chosen), "status": report.status.value, "reason": report.reason}
        print_json(
            {
                "run": str(run),
                **shown,
                "proven": report.bounds.proven,
                **bounds,
                "by_episodes": None if report.by_episodes is None else report.by_episodes.as_json(),
                "certified": [certificate.as_json() for certificate in certified],
                "break_even": survives.as_json(),
            }
        )
        return
    why = [] if chosen in atlas.indices else [atlas.why_not(chosen).text]
    print_lines([f"{readable(chosen)}: {report.status.value}, {report.bounds}.", report.reason])
    tested = [str(words) for words in (report.by_episodes, *certified) if words is not None]
    print_lines([*(text for text in why if text != report.reason), *tested, str(survives)])


def _certified_in(run: Path, state: State) -> list[EpisodeCertificate]:
    """Returns what `axplore certify` has decided about a state and left in the run; refuses what does not follow."""
    from axplore.certificate import EpisodeCertificate, verify_episodes

    found = []
    for file in sorted(run.glob(CERTIFIED.format("*"))):
        certificate = EpisodeCertificate.load(file)
        if certificate.goal != state:
            continue
        if not verify_episodes(certificate).holds:
            raise InvalidInputError(f"what {file} says does not follow from its episodes: see `axplore verify {file}`")
        found.append(certificate)
    return found


@app.command()
def plan(
    run: RunFolder,
    goals: Annotated[
        list[str] | None,
        typer.Argument(metavar="[GOAL]...", help="States, such as s5 or (1,2).", show_default="all"),
    ] = None,
    cost: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Costs above 0 and at most 1: CSV with columns state, action, cost, or JSON with a list of such "
            "objects. Everything else costs 1. The action RESET, without a state, sets the cost of RESET.",
            show_default="every step costs 1",
        ),
    ] = None,
    reset_cost: Annotated[float | None, typer.Option(help="Cost of RESET.", show_default="the file's, or 1")] = None,
    as_json: AsJson = False,
) -> None:
    """Plan for goals at any costs, from the counts of a run and without access to its system.

    \b
    Example:
      axplore plan runs/confusing-chain-1 s5 --cost costs.csv
    \b
    Exit codes:
      0  planned
      2  an argument is wrong: a goal outside the atlas, costs outside (0, 1], a damaged run
    """  # noqa: D301
    from axplore.atlas import Atlas
    from axplore.atlas.plans import read_costs
    from axplore.labels import named

    atlas = Atlas.load(run)
    costs, read_reset_cost = (None, 1.0) if cost is None else read_costs(atlas, cost)
    wanted = [named(atlas.states, goal, "state of the atlas") for goal in goals or ()] or None
    plans = atlas.plans(wanted, costs, read_reset_cost if reset_cost is None else reset_cost)
    if as_json:
        print_json({"run": str(run), "plans": [_plan_as_json(atlas, plan) for plan in plans.values()]})
        return
    for plan in plans.values():
        _print_plan(atlas, plan)


@app.command()
def export(
    run: RunFolder,
    format_name: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"One of {', '.join(EXPORTS)}.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="File to write.", show_default=False)],
    reset: Annotated[
        bool, typer.Option("--reset/--no-reset", help="Whether RESET is an action of a model; properties have none.")
    ] = True,
) -> None:
    """Export what a run has learned, for model checkers, graphs and tables.

    \b
    Example:
      axplore export runs/confusing-chain-1 --format drn -o chain.drn
    \b
    Exit codes:
      0  written
      2  an argument is wrong, or the file cannot be written
    """  # noqa: D301
    from axplore.atlas import Atlas
    from axplore.export import export as export_atlas

    export_atlas(Atlas.load(run), format_name, out, reset=reset)
    print_lines([f"Written to {out}."])


def _file_part(text: str) -> str:
    """Returns a text as a part of the name of a file."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:60] or "goal"


def _print_plan(atlas: Atlas, plan: Plan) -> None:
    from axplore.atlas.state_report import rounded_down, rounded_up
    from axplore.labels import readable

    rows = [(readable(state), readable(plan.policy(state))) for state in atlas.states if state != plan.goal]
    print_table(f"To {readable(plan.goal)}: expected cost about {plan.estimate:.4g}", ("state", "action"), rows)
    if plan.proven:
        print_lines([f"The best cost lies between {rounded_down(plan.lower)} and {rounded_up(plan.upper)}."])
    print_lines([plan.guarantee])


def _plan_as_json(atlas: Atlas, plan: Plan) -> dict[str, Any]:
    from axplore.labels import encode_label, finite
    from axplore.types import RESET

    actions = [(state, plan.policy(state)) for state in atlas.states if state != plan.goal]
    return {
        "goal": encode_label(plan.goal),
        "estimate": finite(plan.estimate),
        "lower": plan.lower,
        "upper": finite(plan.upper),
        "regret": finite(plan.regret),
        "proven": plan.proven,
        "min_cost": plan.min_cost,
        "guarantee": plan.guarantee,
        "policy": [
            {"state": encode_label(state), "reset": action is RESET}
            | ({} if action is RESET else {"action": encode_label(action)})
            for state, action in actions
        ],
    }
