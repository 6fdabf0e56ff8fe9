"use strict";
(() => {
  // Theme: what the system says, until the reader says otherwise. Pages from disk may have no storage.
  const root = document.documentElement, button = document.getElementById("theme");
  const names = { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };
  const order = Object.keys(names);
  const remembered = () => { try { return localStorage.getItem("contone-theme"); } catch { return null; } };
  const remember = (theme) => { try { localStorage.setItem("contone-theme", theme); } catch { /* for this visit only */ } };
  const apply = (theme) => {
    if (theme === "auto") delete root.dataset.theme; else root.dataset.theme = theme;
    button.textContent = names[theme];
    button.dataset.now = theme;
  };
  apply(names[remembered()] ? remembered() : "auto");
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = order[(order.indexOf(button.dataset.now) + 1) % order.length];
    apply(next);
    remember(next);
  });

  // Sorting: every header of a sortable table becomes a button. Cells without a value stay at the end.
  const key = (row, column) => {
    const cell = row.cells[column];
    const value = cell.dataset.value;
    return value === undefined ? cell.textContent.trim() : value === "" ? null : Number(value);
  };
  const compare = (a, b) => typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
  const sort = (table, column, down) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [key(row, column), row]);
    rows.sort(([a], [b]) => a === null || b === null ? (a === null) - (b === null) : down ? compare(b, a) : compare(a, b));
    body.append(...rows.map(([, row]) => row));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const control = document.createElement("button");
      control.type = "button";
      control.append(...head.childNodes);
      head.append(control);
      control.addEventListener("click", () => {
        const first = head.dataset.first === "descending";
        const now = head.getAttribute("aria-sort");
        const down = now === null ? first : now === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sort(table, column, down);
      });
    });
  }

  // Print everything, also what is folded.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((part) => { part.open = false; }));

  // Where the reader is.
  const links = new Map([...document.querySelectorAll("nav.contents a")].map((a) => [a.hash.slice(1), a]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      links.forEach((a) => a.removeAttribute("aria-current"));
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "0px 0px -80% 0px" });
  document.querySelectorAll("main > section[id]").forEach((section) => seen.observe(section));

  // Surfaces: the truth in place of a picture while it is pointed at, and one method against the truth.
  const surfaces = [...document.querySelectorAll("#surfaces figure")], against = document.getElementById("against");
  if (surfaces.length > 2) {
    const sources = surfaces.map((figure) => figure.querySelector("img").src);
    const method = document.getElementById("against-method"), share = document.getElementById("against-share");
    const [under, over] = against.querySelectorAll(".stage img");
    under.src = sources[0];
    const show = () => {
      const caption = surfaces[Number(method.value)].querySelector("figcaption");
      over.src = sources[Number(method.value)];
      over.alt = caption.firstChild.textContent;
      over.style.clipPath = `inset(0 0 0 ${100 - share.value}%)`;
      document.getElementById("against-caption").textContent = caption.querySelector("span").textContent;
    };
    surfaces.slice(2).forEach((figure, place) => {
      const image = figure.querySelector("img"), index = place + 2;
      figure.tabIndex = 0;
      for (const event of ["pointerenter", "focus"]) figure.addEventListener(event, () => { image.src = sources[0]; });
      for (const event of ["pointerleave", "blur"]) figure.addEventListener(event, () => { image.src = sources[index]; });
      const choose = () => { method.value = String(index); show(); against.scrollIntoView({ block: "nearest" }); };
      figure.addEventListener("click", choose);
      figure.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(); });
    });
    method.addEventListener("change", show);
    share.addEventListener("input", show);
    method.value = "2";
    against.hidden = false;
    document.querySelectorAll(".only-script").forEach((element) => { element.hidden = false; });
    show();
  }
})();
