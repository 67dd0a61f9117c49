"use strict";
// The data from Python: states, layout, transitions, policies and answers. A state is given by its index: those of the
// atlas come first, in order of admission, then those of the frontier. This script only looks things up.
const atlas = (() => {
  const content = JSON.parse(document.getElementById("content").textContent);
  const arrays = {};

  async function unpacked({ type, data }) {
    const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const buffer = await new Response(stream).arrayBuffer();
    return new { int8: Int8Array, int16: Int16Array, int32: Int32Array, float64: Float64Array }[type](buffer);
  }
  /** Scripts that read arrays wait for this promise. */
  const ready = Promise.all(
    Object.entries(content.arrays).map(async ([name, packed]) => { arrays[name] = await unpacked(packed); }));

  const { members, labels } = content;
  const isMember = (index) => index < members;
  const statusOf = (index) => content.statusNames[content.statuses[index]];
  const classOf = (index) => statusOf(index).replace(" ", "-");
  const actionsOf = (index) => content.actionLists[content.actionListOf[index]];
  /** Whether a state of the atlas has no action but RESET. */
  const onlyResets = (index) => isMember(index) && actionsOf(index).length === 0;
  const actionName = (index, action) => (action === content.reset ? "RESET" : actionsOf(index)[action]);

  /** The expected steps to a state, as text. */
  function steps(index) {
    if (content.refuted) return "nothing is proven of it";
    if (!content.proven) return isMember(index) ? `about ${content.lowerText[index]} expected steps` : "on the frontier";
    if (!isMember(index)) return `at least ${content.lowerText[index]} expected steps`;
    const [lower, upper] = [content.lowerText[index], content.upperText[index]];
    return `${lower === upper ? lower : `${lower} to ${upper}`} expected steps`;
  }

  function describe(index) {
    const status = content.proven ? `${statusOf(index)}, ` : "";
    const doubt = !content.proven && isMember(index) ? ", not proven" : "";
    return `${labels[index]}: ${status}${steps(index)}${doubt}${onlyResets(index) ? "; only resets" : ""}`;
  }

  /** Whether the page has the policy of a goal; if there are very many, it has those of the first goals. */
  const hasPolicy = (goal) => goal < content.widths.length;

  /** What a policy plays at a step of its journey, which a RESET restarts: the index of an action, or content.reset. */
  function choice(goal, index, step) {
    const width = content.widths[goal], horizon = content.horizons[goal];
    if (!isMember(index) || index >= width || index === goal || (horizon && step >= horizon)) return content.reset;
    return arrays.choices[arrays.policyOffsets[goal] + (horizon ? step * width : 0) + index];
  }

  /** The states after an action with their frequencies, the most frequent first; none if it was never played. */
  function outcomes(index, action) {
    if (action === content.reset) return [[0, 1]];
    const pair = arrays.statePairs[index] + action, visits = arrays.visits[pair], found = [];
    for (let entry = arrays.rowOffsets[pair]; visits && entry < arrays.rowOffsets[pair + 1]; entry++) {
      found.push([arrays.successors[entry], arrays.counts[entry] / visits]);
    }
    return found.sort((a, b) => b[1] - a[1]);
  }

  /** The states that a policy may meet, the nearest first, each with the step of the journey at which it first does. */
  function met(goal) {
    const first = new Map([[0, 0]]), seen = new Set(["0 0"]), waiting = [[0, 0]];
    for (const [index, step] of waiting) {
      const action = choice(goal, index, step);
      if (action === content.reset) continue;
      const next = content.horizons[goal] ? step + 1 : 0;
      for (const [successor] of outcomes(index, action)) {
        const node = `${successor} ${next}`;
        if (successor < 0 || !isMember(successor) || successor === goal || seen.has(node)) continue;
        seen.add(node);
        if (!first.has(successor)) first.set(successor, next);
        waiting.push([successor, next]);
      }
    }
    return first;
  }

  const part = (name, offsets, goal) => arrays[name].subarray(arrays[offsets][goal], arrays[offsets][goal + 1]);

  /** Whether the page has the answers for a goal: its most likely route and arrival probabilities. */
  const hasAnswers = (goal) => goal < content.answered;

  /** The indices on the most likely route to a goal, as many as the page has, and their number; null if there is none. */
  function route(goal) {
    return content.routeLengths[goal] ? { indices: part("routes", "routeOffsets", goal), length: content.routeLengths[goal] } : null;
  }

  /** The most likely route to a goal as a list of indices; where the page has only its beginning, by the likeliest outcomes. */
  function wholeRoute(goal) {
    const known = hasAnswers(goal) ? route(goal) : null;
    if (!known) return [];
    const indices = [...known.indices], seen = new Set(indices);
    while (indices.length < known.length && hasPolicy(goal)) {
      const last = indices[indices.length - 1], action = choice(goal, last, indices.length - 1);
      const next = action === content.reset ? undefined : outcomes(last, action).find(([index]) => !seen.has(index));
      if (!next || next[0] < 0) break;
      indices.push(next[0]);
      seen.add(next[0]);
    }
    return indices;
  }

  /** The probability of having arrived, after the steps given: by the observed frequencies, and proven lower bounds. */
  function chances(goal) {
    const parts = (name) => Array.from(part(name, "chanceOffsets", goal), (value) => value / content.chanceUnit);
    const isProven = content.proven && content.upper[goal] !== null, estimates = parts("estimates");
    const last = content.chanceLast[goal], count = estimates.length;
    const steps = estimates.map((_, i) => (count > 1 ? Math.floor((i * last) / (count - 1)) : 0));
    return { steps, estimates, lowers: isProven ? parts("lowers") : null, mean: content.meanSteps[goal], isRough: Boolean(content.chanceRough[goal]) };
  }

  /** The bounds of a goal over the steps of the run. */
  function boundsOverSteps(goal) {
    const points = [];
    let start = 0;
    content.boundSteps.forEach((taken, moment) => {
      const known = content.boundKnown[moment], upper = goal < known ? arrays.boundUpper[start + goal] : -1;
      if (upper >= 0) points.push({ steps: taken, lower: arrays.boundLower[start + goal] / 1000, upper: upper / 1000 });
      start += known;
    });
    return points;
  }

  return { content, ready, labels, members, isMember, statusOf, classOf, actionsOf, onlyResets, actionName, steps, describe,
    hasPolicy, choice, outcomes, met, hasAnswers, route, wholeRoute, chances, boundsOverSteps };
})();
