"use strict";
// The panel of a state: its steps, route, arrival probability, and bounds over the steps of the run.
const panel = (() => {
  const { svg, html, number, percent } = elements;
  const { content, labels, choice, outcomes } = atlas;
  const label = (text, left, top, anchor) => svg("text", { x: left, y: top, "text-anchor": anchor }, text);
  /** Steps of a route beyond these are behind a click. */
  const LISTED = 10;
  const axes = () => svg("path", { class: "axis", d: "M40 15V120H330" });

  /** What a policy plays in a state, and where that led. */
  function sentence(goal, index, step) {
    const action = choice(goal, index, step);
    const item = html("li", {}, "in ", html("b", {}, labels[index]));
    if (action === content.reset) {
      item.append(" RESET");
      return item;
    }
    const found = outcomes(index, action);
    const parts = found.slice(0, 4).map(([successor, part]) => `${successor < 0 ? "elsewhere" : labels[successor]} (${percent(part)})`);
    if (found.length > 4) parts.push(`${found.length - 4} others`);
    item.append(" play ", html("b", {}, atlas.actionName(index, action)), parts.length ? `, which led to ${parts.join(", ")}` : "");
    return item;
  }

  function way(goal) {
    const route = atlas.route(goal);
    if (!route) return [html("p", {}, "No route through the states of the atlas was observed.")];
    const list = html("ol", { id: "route" });
    // A route has no RESET, so the step of the journey is the index in the list.
    [...route.indices].slice(0, route.length - 1).forEach((index, step) => list.append(sentence(goal, index, step)));
    const parts = [html("p", {}, `The most likely route, ${number(route.length - 1)} ${route.length === 2 ? "step" : "steps"}:`), list];
    const rest = route.length - 1 - list.childElementCount;
    if (list.childElementCount > LISTED) {
      const more = html("details", {}, html("summary", {}, `${number(route.length - 1 - LISTED)} more steps`));
      const further = html("ol", { start: LISTED + 1 }, ...[...list.children].slice(LISTED));
      more.append(further);
      if (rest > 0) more.append(html("p", {}, `… and ${number(rest)} more states.`));
      parts.push(more);
    }
    parts.push(html("p", {}, "Then it has arrived. In other states the policy says how to continue; outside the atlas it resets."));
    return parts;
  }

  function wholePolicy(goal, met) {
    const indices = [...met.keys()], { listed } = content.limits;
    const whole = html("details", {}, html("summary", {}, `The whole policy: ${number(indices.length)} ${indices.length === 1 ? "state" : "states"} may be met`));
    whole.addEventListener("toggle", () => {
      if (whole.childElementCount > 1) return;
      const steps = html("ul", { id: "whole-policy" });
      for (const index of indices.slice(0, listed)) steps.append(sentence(goal, index, met.get(index)));
      whole.append(steps);
      if (indices.length > listed) whole.append(html("p", {}, `${indices.length - listed} more are in the atlas.`));
    });
    return whole;
  }

  /** What every action of a state led to. */
  function allActions(index) {
    const names = atlas.actionsOf(index), list = html("ul", { id: "all-actions" });
    const { listed } = content.limits;
    names.slice(0, listed).forEach((name, action) => {
      const found = outcomes(index, action);
      const led = found.length ? found.slice(0, 6).map(([successor, part]) => `${successor < 0 ? "elsewhere" : labels[successor]} (${percent(part)})`).join(", ") : "never played";
      list.append(html("li", {}, html("b", {}, name), `: ${led}${found.length > 6 ? `, ${found.length - 6} others` : ""}`));
    });
    const details = html("details", {}, html("summary", {}, `Its ${number(names.length)} ${names.length === 1 ? "action" : "actions"}`), list);
    if (names.length > listed) details.append(html("p", {}, `${number(names.length - listed)} more are in the atlas.`));
    return details;
  }

  function chances(goal) {
    const { steps: grid, estimates, lowers, mean, isRough } = atlas.chances(goal);
    const last = grid[grid.length - 1];
    if (!estimates[estimates.length - 1]) return [html("p", {}, "By the observed frequencies its policy does not arrive.")];
    /** The last of the steps of the curves that is no later. */
    const before = (steps) => { let i = grid.length - 1; while (grid[i] > steps) i--; return i; };
    const at = (values, steps) => values[before(steps)];
    // Beyond the curves: the mean is at most the upper bound, so n steps or more have a probability of at most upper / n.
    const proven = (steps) => Math.max(at(lowers, steps), steps > last ? 1 - content.upper[goal] / (steps + 1) : 0);
    const start = Math.ceil(2 * (content.shownSteps[goal] || 1));
    const input = html("input", { id: "chance-steps", type: "number", min: 0, step: 1, value: start });
    const output = html("output", { id: "chance", for: "chance-steps" });
    const show = () => {
      const steps = Math.max(0, Math.floor(+input.value || 0));
      const beyond = grid[before(steps)] !== steps && at(estimates, steps) < 0.999 ? "at least " : "";
      const rough = isRough ? " by its expected steps alone; atlas.probability may prove more" : "";
      const promise = lowers ? `; at least ${percent(Math.floor(1000 * proven(steps) + 1e-9) / 1000)} proven${rough}` : "";
      output.textContent = `${beyond}${percent(at(estimates, steps))} by the observed frequencies${promise}`;
    };
    input.addEventListener("input", show);
    show();
    const from = (part) => grid[estimates.findIndex((estimate) => estimate >= part)] ?? -1;
    const usual = from(0.99), half = from(0.5);
    const end = Math.max(4, usual < 0 ? last : Math.ceil(1.2 * usual));
    const x = (steps) => (40 + (steps / end) * 290).toFixed(1), y = (part) => (120 - 105 * part).toFixed(1);
    const curve = (values) => Array.from({ length: 101 }, (_, i) => Math.round((i * end) / 100))
      .map((steps, i) => `${i ? "L" : "M"}${x(steps)} ${y(at(values, steps))}`).join("");
    const said = `Probability of having arrived, over steps; ${half < 0 ? "less than half" : `half after ${half} steps`}.`;
    const chart = svg("svg", { class: "chart", viewBox: "0 0 340 150", role: "img", "aria-label": said },
      axes(), label("100 %", 36, 19, "end"), label("0", 36, 124, "end"), label(`${end} steps`, 330, 136, "end"), label("0", 40, 136, "middle"),
      ...(lowers ? [svg("path", { class: "curve promise", d: curve(lowers) })] : []),
      svg("path", { class: "curve chance", d: curve(estimates) }));
    const key = html("p", { class: "key" }, html("span", { class: "line" }), " by the observed frequencies");
    if (lowers) key.append(" ", html("span", { class: "line promise" }), " proven at least");
    const average = mean === null ? `By the observed frequencies it may not have arrived after ${last} steps.`
      : `By the observed frequencies it takes ${mean.toFixed(2)} steps on average.`;
    return [html("h4", {}, "Probability of arrival"),
      html("p", {}, html("label", { for: "chance-steps" }, "within "), input, " steps: ", output), chart, key, html("p", {}, average)];
  }

  /** The bounds of a goal over the steps of the run, as a band and as a table. */
  function bounds(goal) {
    const points = atlas.boundsOverSteps(goal), title = html("h4", {}, "Bounds over steps");
    if (!points.length) return [title, html("p", { id: "bounds-none" }, "The log of the run has no bounds for it.")];
    const [first, last] = [points[0], points[points.length - 1]];
    if (points.length === 1) {
      return [title, html("p", { id: "bounds-once" }, `They were logged once, at step ${number(last.steps)}: ${last.lower.toFixed(3)} to ${last.upper.toFixed(3)}.`)];
    }
    const end = Math.max(last.steps, first.steps + 1);
    const bottom = Math.floor(Math.min(...points.map(({ lower }) => lower)));
    const top = Math.ceil(Math.max(...points.map(({ upper }) => upper), bottom + 0.1) * 10) / 10;
    const logarithmic = end > content.limits.logarithmicFrom * first.steps && first.steps > 0;
    const scale = logarithmic ? Math.log : (steps) => steps;
    const x = (steps) => (40 + ((scale(steps) - scale(first.steps)) / (scale(end) - scale(first.steps))) * 290).toFixed(1);
    const y = (value) => (120 - (105 * (value - bottom)) / (top - bottom)).toFixed(1);
    // A staircase: a bound holds until the next was logged.
    const stairs = (name) => points.map((point, i) => (i ? `H${x(point.steps)}V${y(point[name])}` : `${x(point.steps)} ${y(point[name])}`)).join("");
    const back = [...points].reverse().map((point) => `V${y(point.lower)}H${x(point.steps)}`);
    const said = `Bounds over steps: ${first.lower} to ${first.upper} after ${number(first.steps)} steps, ${last.lower} to ${last.upper} after ${number(last.steps)}. A table follows.`;
    const chart = svg("svg", { class: "chart", id: "bounds-chart", viewBox: "0 0 340 150", role: "img", "aria-label": said },
      axes(), label(top.toFixed(1), 36, 19, "end"), label(bottom, 36, 124, "end"),
      label(`${number(end)} steps${logarithmic ? ", logarithmic" : ""}`, 330, 136, "end"), label(number(first.steps), 40, 136, "start"),
      svg("path", { class: "band", d: `M${stairs("upper")}${back.join("")}Z` }),
      svg("path", { class: "curve bound", d: `M${stairs("upper")}` }), svg("path", { class: "curve bound", d: `M${stairs("lower")}` }));
    const rows = points.map(({ steps, lower, upper }) =>
      html("tr", {}, html("th", { scope: "row" }, number(steps)), html("td", {}, lower.toFixed(3)), html("td", {}, upper.toFixed(3))));
    const heads = ["steps", "lower", "upper"].map((text) => html("th", { scope: "col" }, text));
    return [title, chart, html("p", { class: "key" }, "lower and upper bound on the expected steps to it"),
      html("details", {}, html("summary", {}, "as a table"), html("table", { id: "bounds-table" },
        html("caption", {}, "Bounds over the steps of the run"), html("thead", {}, html("tr", {}, ...heads)), html("tbody", {}, ...rows)))];
  }

  /** The parts of the panel of a state; `met` are the states that its policy may meet, if it has one. */
  function parts(index, met) {
    const shown = [
      html("p", {}, html("span", { class: `badge ${atlas.classOf(index)}` }, content.proven ? atlas.statusOf(index) : "not proven")),
      html("p", { class: "steps", id: "panel-steps" }, atlas.steps(index)), html("p", { id: "panel-reason" }, content.reasons[index])];
    if (content.pictures[index]) shown.unshift(html("img", { class: "picture", src: content.pictures[index], alt: `Picture of ${labels[index]}` }));
    if (content.breakEven[index]) shown.push(html("p", { id: "panel-break-even" }, content.breakEven[index]));
    if (!atlas.isMember(index)) return shown;
    if (content.byEpisodes[index]) shown.push(html("p", { id: "panel-by-episodes" }, content.byEpisodes[index]));
    const visits = content.visits[index];
    shown.push(html("p", {}, `Found at step ${number(content.foundAt[index])}; ${number(visits)} ${visits === 1 ? "visit" : "visits"}.`));
    if (atlas.actionsOf(index).length) shown.push(allActions(index));
    if (index === 0) return [...shown, html("p", {}, "RESET leads here.")];
    if (content.refuted) return shown;
    if (!met) return [...shown, html("p", {}, "Its policy is in the atlas, but too large for this page.")];
    shown.push(html("h4", {}, "Route"), ...(atlas.hasAnswers(index) ? way(index) : []), wholePolicy(index, met));
    if (atlas.hasAnswers(index)) shown.push(...chances(index));
    else shown.push(html("p", {}, "Its most likely route and arrival probability are in the atlas, but were left out of this page."));
    return content.proven ? [...shown, ...bounds(index)] : shown;
  }

  return { parts };
})();
