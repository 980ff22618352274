// Keeps a page as the cluster is by now. Without it everything works: pages that move are then read again by themselves.
const shown = document.getElementById("shown");
const told = document.getElementById("told");
for (const one of document.querySelectorAll("[data-scripted]")) one.hidden = false;
document.addEventListener("keydown", pressed);

let following; // the feed of the page, while it can be seen
if (shown?.dataset.live !== undefined) {
  document.addEventListener("visibilitychange", look);
  look();
}

const screens = new Map(Object.entries({ m: "/", n: "/", v: "/vms", o: "/moves", r: "/groups", p: "/plans", c: "/capacity", e: "/events" }));

let going = false; // g was the last key

// pressed does what keys are for, where nobody is typing.
function pressed(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest?.("input, select, textarea")) return;
  const to = going ? screens.get(event.key) : undefined;
  going = event.key === "g";
  if (to) location.assign(to);
  else if (event.key === "/") document.querySelector("input[type=search]")?.focus();
  else if (event.key === "?") {
    const help = document.getElementById("keys");
    if (!help) return;
    help.open = true;
    help.querySelector("summary").focus();
  } else return;
  event.preventDefault();
}

let lines = []; // of the content, each with its end

// look follows the page while somebody can see it. Nobody reads what a hidden one becomes; when it is shown it gets all of its content.
function look() {
  if (!document.hidden) following ??= follow();
  else {
    following?.close();
    following = undefined;
  }
}

function follow() {
  const source = new EventSource("/live" + location.pathname + location.search);
  source.addEventListener("message", ({ data }) => {
    const { content, patch, at, trouble } = JSON.parse(data);
    if (content !== undefined) lines = linesOf(content);
    if (patch !== undefined) lines = patched(lines, patch);
    if (content !== undefined || patch !== undefined) show(lines.join(""));
    if (at !== undefined) document.getElementById("at").textContent = at;
    told.textContent = trouble ? `It could not be read again: ${trouble}` : "";
  });
  source.addEventListener("over", () => {
    source.close();
    location.reload(); // the session has ended: this is the login page now
  });
  source.addEventListener("error", () => {
    told.textContent = "This coordinator does not answer. What is shown may be old; it is asked again.";
    // What was refused is not asked for again by the browser. What could not be reached is.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 15000);
  });
  return source;
}

const linesOf = (text) => text.split(/(?<=\n)/);

// patched are the lines after changes: each says from which old line on how many go, and which come instead.
function patched(old, changes) {
  const fresh = [];
  let from = 0;
  for (const { at, drop = 0, lines: instead = "" } of changes) {
    for (; from < at; from++) fresh.push(old[from]);
    if (instead) for (const line of linesOf(instead)) fresh.push(line);
    from = at + drop;
  }
  return fresh.concat(old.slice(from));
}

// show makes the page what its new content says, and touches only what differs: what is unfolded, typed or chosen stays.
function show(content) {
  const held = document.activeElement;
  becomeChildren(shown, new DOMParser().parseFromString(content, "text/html").body);
  if (held !== document.activeElement && held?.isConnected) held.focus({ preventScroll: true });
}

// keyOf is what a row or a form is about. One thing never turns into another: nobody shall press what has just become something else.
const keyOf = (node) => node.dataset?.key ?? node.getAttribute?.("action") ?? "";

const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

function become(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  for (const { name, value } of fresh.attributes) {
    if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  becomeChildren(old, fresh);
}

// becomeChildren keeps each child that is still there. What comes or goes before it is no reason to make it anew.
function becomeChildren(old, fresh) {
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  const mine = paired(before, after);
  const kept = new Set(mine);
  const moved = new Map(before.filter((one) => !kept.has(one) && keyOf(one)).map((one) => [keyOf(one), one]));
  after.forEach((one, i) => {
    const other = moved.get(keyOf(one));
    if (!mine[i] && other && alike(other, one)) {
      mine[i] = other;
      kept.add(other);
      moved.delete(keyOf(one));
    }
  });
  for (const one of before) if (!kept.has(one)) one.remove();
  let at = old.firstChild;
  after.forEach((one, i) => {
    if (mine[i] === at && at) at = at.nextSibling;
    else old.insertBefore(mine[i] ?? one, at);
    if (mine[i]) become(mine[i], one);
  });
}

// paired tells for each of the second list which of the first it is: as many as can be without a change of their order.
function paired(before, after) {
  const mine = new Array(after.length);
  let first = 0;
  let a = before.length;
  let b = after.length;
  while (first < a && first < b && alike(before[first], after[first])) mine[first] = before[first++];
  while (a > first && b > first && alike(before[a - 1], after[b - 1])) mine[--b] = before[--a];
  const width = b - first + 1;
  if ((a - first) * width > 4e6) return mine; // rows have keys all the same
  const longest = new Uint32Array((a - first + 1) * width);
  for (let i = a - 1; i >= first; i--) {
    for (let k = b - 1; k >= first; k--) {
      const here = (i - first) * width + k - first;
      longest[here] = alike(before[i], after[k]) ? longest[here + width + 1] + 1 : Math.max(longest[here + width], longest[here + 1]);
    }
  }
  for (let i = first, k = first; i < a && k < b; ) {
    const here = (i - first) * width + k - first;
    if (alike(before[i], after[k])) mine[k++] = before[i++];
    else if (longest[here + width] >= longest[here + 1]) i++;
    else k++;
  }
  return mine;
}
