function (fillable) {
  "use strict";
  const empty = { path: "", landmarks: [], actions: [], complete: false, content: "" };
  if (!document.body) return empty; // the page is being left
  if (location.protocol === "chrome-error:") return { ...empty, path: "no page", complete: true };
  const ROLES = { A: "link", BUTTON: "button", SUMMARY: "button", OPTION: "option" };
  const INPUTS = { submit: "button", button: "button", image: "button", reset: "button", checkbox: "checkbox", radio: "radio" };
  const CLICKED = new Set(["link", "button", "tab", "menuitem", "checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"]);
  const WRITTEN = new Set(["text", "email", "password", "search", "tel", "url", "number", ""]);
  const text = (node) => (node.innerText || node.textContent || "").replace(/\s+/g, " ").trim();

  function isVisible(node) {
    const box = node.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && getComputedStyle(node).visibility === "visible" && !node.closest("[aria-hidden=true], [inert]");
  }
  function isField(node) {
    return node.tagName === "TEXTAREA" || (node.tagName === "INPUT" && WRITTEN.has((node.getAttribute("type") || "").toLowerCase()));
  }
  function roleOf(node) {
    const given = node.getAttribute("role");
    if (given) return given.split(" ")[0];
    if (isField(node)) return "fill";
    return node.tagName === "INPUT" ? INPUTS[node.type] : ROLES[node.tagName];
  }
  // As assistive technology computes it, in short: aria-labelledby, aria-label, <label>, the content, and the rest.
  function nameOf(node) {
    const by = (node.getAttribute("aria-labelledby") || "").split(/\s+/).map((id) => id && document.getElementById(id)).filter(Boolean);
    const labels = node.labels ? [...node.labels] : [];
    const own = node.tagName === "INPUT" ? (CLICKED.has(roleOf(node)) ? node.value : "") : text(node);
    const picture = node.querySelector("img[alt]");
    return [by.map(text).join(" "), node.getAttribute("aria-label"), labels.map(text).join(" "), own, picture && picture.alt,
      node.getAttribute("title"), node.getAttribute("placeholder"), node.getAttribute("name")].map((name) => (name || "").trim()).find(Boolean) || "";
  }
  function leavesTheSite(node) {
    if (node.tagName !== "A") return false;
    if (!node.href || node.hasAttribute("download") || (node.target && node.target !== "_self")) return true;
    const goal = new URL(node.href, location.href);
    return goal.protocol !== location.protocol || goal.host !== location.host;
  }

  const dialog = [...document.querySelectorAll("dialog[open], [role=dialog][aria-modal=true], [role=alertdialog]")].filter(isVisible).pop();
  const within = dialog || document.body;
  const actions = [], elements = [], filled = [], times = new Map();
  for (const node of within.querySelectorAll("a, button, summary, input, textarea, [role]")) {
    const role = roleOf(node), name = nameOf(node);
    const wanted = role === "fill" ? fillable.includes(name) && !times.has(`fill ${name}`) : CLICKED.has(role) && !leavesTheSite(node);
    if (!wanted || node.disabled || node.getAttribute("aria-disabled") === "true" || !isVisible(node)) continue;
    const called = name ? `${role} ${name}` : role;
    times.set(called, (times.get(called) || 0) + 1);
    actions.push(times.get(called) > 1 ? `${called} (${times.get(called)})` : called);
    elements.push(node);
    if (role === "fill" && node.value) filled.push(`${name}=${node.value}`);
    if (node.checked || ["aria-checked", "aria-pressed", "aria-selected", "aria-expanded"].some((sign) => node.getAttribute(sign) === "true")) filled.push(`${name} on`);
  }
  window.axploreElements = elements;
  const MARKS = "h1, h2, [role=heading], dialog[open], [role=dialog], [role=alertdialog], [role=alert], [role=status]";
  const landmarks = [...document.querySelectorAll(MARKS)].filter(isVisible)
    .map((node) => (node.matches("dialog, [role=dialog], [role=alertdialog]") ? `dialog ${nameOf(node).slice(0, 80)}` : text(node).slice(0, 80)))
    .filter(Boolean);
  return {
    path: (location.protocol === "file:" ? location.pathname.split("/").pop() : location.pathname) + location.search + location.hash,
    landmarks: [...landmarks.slice(0, 12), ...filled], actions, complete: document.readyState === "complete",
    content: text(document.body).slice(0, 20000),
  };
}
