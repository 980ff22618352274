// Keeps a page as the cluster is by now. Without it everything works: pages that move are then read again by themselves.
const shown = document.getElementById("shown");
const told = document.getElementById("told");
for (const form of document.querySelectorAll("form[data-scripted]")) form.hidden = false;
if (shown?.dataset.live !== undefined) follow();

function follow() {
  const source = new EventSource("/live" + location.pathname + location.search);
  source.addEventListener("message", ({ data }) => {
    const { content, at, trouble } = JSON.parse(data);
    if (content !== undefined) show(content);
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

function becomeChildren(old, fresh) {
  const keyed = new Map([...old.children].filter(keyOf).map((one) => [keyOf(one), one]));
  const wanted = new Set([...fresh.children].map(keyOf));
  let at = old.firstChild;
  const skip = () => {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  };
  for (const one of [...fresh.childNodes]) {
    while (at && keyOf(at) && !wanted.has(keyOf(at))) skip();
    const mine = keyOf(one) ? keyed.get(keyOf(one)) : at;
    if (!mine || !alike(mine, one)) {
      old.insertBefore(one, at);
      continue;
    }
    keyed.delete(keyOf(one));
    if (mine === at) at = at.nextSibling;
    else old.insertBefore(mine, at);
    become(mine, one);
  }
  while (at) skip();
}
