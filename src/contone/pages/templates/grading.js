(() => {
  // One row at a time; degrees are whole per cents that sum to 100, and stay so whatever is moved.
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const q = data.labels.length, n = data.rows.length, key = `contone-grade-${data.key}`;
  const equal = () => Array.from({ length: q }, (_, j) => Math.floor(100 / q) + (j < 100 % q ? 1 : 0));
  const fresh = () => ({ degrees: equal(), touched: Array(q).fill(false), state: "open" });
  const untouched = (row) => !row.equal && !row.touched.some(Boolean);
  let rows = data.rows.map(fresh), at = 0, stored = true, saved = true;

  const keep = () => {
    saved = false;
    try { localStorage.setItem(key, JSON.stringify({ rows, at })); } catch { stored = false; }
    find("unstored").hidden = stored;
  };
  try {
    const before = JSON.parse(localStorage.getItem(key) || "null");
    if (before && before.rows.length === n && before.rows.every((r) => r.degrees.length === q)) ({ rows, at } = before);
  } catch { stored = false; }

  // Whole numbers in proportion to weights that sum to total: round down, then give the rest to the largest remainders.
  const share = (weights, total) => {
    const sum = weights.reduce((a, b) => a + b, 0);
    const exact = weights.map((w) => sum > 0 ? w * total / sum : total / weights.length);
    const whole = exact.map(Math.floor);
    const order = exact.map((e, i) => [e - whole[i], i]).sort((a, b) => b[0] - a[0] || a[1] - b[1]);
    for (let left = total - whole.reduce((a, b) => a + b, 0), i = 0; left > 0; left -= 1, i += 1) whole[order[i][1]] += 1;
    return whole;
  };
  // Labels that nobody has touched make room first; those that were set move only where there is no other way.
  const move = (row, j, wanted) => {
    const value = Math.max(0, Math.min(100, Math.round(wanted) || 0));
    row.touched[j] = true;
    const others = [...row.degrees.keys()].filter((i) => i !== j);
    const loose = others.filter((i) => !row.touched[i]), held = others.filter((i) => row.touched[i]);
    const heldSum = held.reduce((a, i) => a + row.degrees[i], 0), left = 100 - value;
    const put = (places, total) => share(places.map((i) => row.degrees[i]), total).forEach((v, k) => { row.degrees[places[k]] = v; });
    if (q === 1) { row.degrees[j] = 100; return; }
    row.degrees[j] = value;
    if (loose.length && left >= heldSum) put(loose, left - heldSum);
    else { loose.forEach((i) => { row.degrees[i] = 0; }); put(held, left); }
  };

  const element = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const controls = data.labels.map((name, j) => {
    const slider = element("input", { type: "range", min: 0, max: 100, step: 1, id: `label-${j}` });
    const number = element("input", { type: "number", min: 0, max: 100, step: 1, inputMode: "numeric" });
    number.setAttribute("aria-label", `${name}, per cent`);
    const marked = element("span", { className: "marked", textContent: "marked" });
    const caption = element("label", { htmlFor: slider.id }, name, marked);
    const box = element("div", { className: "label" }, caption, element("span", { className: "percent" }, number, "%"), slider);
    const set = (value) => { move(rows[at], j, Number(value)); if (rows[at].state !== "graded") rows[at].state = "open"; keep(); show(j); };
    slider.addEventListener("input", () => set(slider.value));
    slider.addEventListener("keydown", (event) => {
      const step = { PageUp: 10, PageDown: -10 }[event.key];
      if (step) { event.preventDefault(); set(rows[at].degrees[j] + step); }
    });
    number.addEventListener("focus", () => number.select());
    number.addEventListener("change", () => set(number.value));
    return { slider, number, marked, box };
  });

  const places = data.rows.map((row, i) => {
    const button = element("button", { type: "button", textContent: i + 1 });
    button.addEventListener("click", () => go(i));
    return button;
  });
  find("places").append(...places);

  const entry = (cell) => {
    const shown = element("dd");
    if (cell.kind === "image" && cell.source) shown.append(element("img", { src: cell.source, alt: `${cell.name}: ${cell.value}` }), element("span", { className: "absent", textContent: cell.value }));
    else if (cell.value === "") shown.append(element("span", { className: "absent", textContent: "(empty)" }));
    else { shown.textContent = cell.value; if (cell.kind === "text") shown.className = "text"; }
    return [element("dt", { textContent: cell.name }), shown];
  };

  find("labels").append(...controls.map((c) => c.box));  // each keeps its place from row to row

  let drawn = -1;
  const show = (active = -1) => {
    const row = rows[at], given = data.rows[at];
    if (drawn !== at) {
      drawn = at;
      find("card-h").textContent = `Row ${given.row} of the file (${at + 1} of ${n})`;
      find("row").replaceChildren(given.cells.length ? element("dl", {}, ...given.cells.flatMap(entry)) : element("p", { className: "note", textContent: "The file has no other columns." }));
      controls.forEach((c, j) => { c.marked.hidden = !given.marked[j]; });
    }
    controls.forEach((c, j) => {
      c.slider.value = row.degrees[j];
      c.slider.setAttribute("aria-valuetext", `${row.degrees[j]} per cent`);
      if (j !== active || document.activeElement !== c.number) c.number.value = row.degrees[j];
      c.box.classList.toggle("touched", row.touched[j]);
    });
    const graded = rows.filter((r) => r.state === "graded").length, skipped = rows.filter((r) => r.state === "skipped").length;
    find("ask").hidden = !(row.asked && row.state === "open" && untouched(row));
    find("bar").value = graded + skipped;
    find("count").textContent = `${graded} of ${n} graded${skipped ? `, ${skipped} skipped` : ""}`;
    find("save").disabled = graded === 0;
    find("previous").disabled = at === 0;
    places.forEach((button, i) => {
      button.className = rows[i].state;
      button.setAttribute("aria-label", `Row ${data.rows[i].row}, ${rows[i].state === "open" ? "not graded" : rows[i].state}`);
      if (i === at) button.setAttribute("aria-current", "true"); else button.removeAttribute("aria-current");
    });
  };
  const go = (place) => {
    if (place < 0 || place >= n) return;
    at = place;
    keep();
    show();
    find("card").focus({ preventScroll: true });
    if (find("card").getBoundingClientRect().top < 0) find("card").scrollIntoView();
  };
  const onward = () => {
    const open = [...rows.keys()].filter((i) => rows[i].state === "open");
    if (open.length) return go(open.find((i) => i > at) ?? open[0]);
    keep();
    show();
    find("save").focus();
  };
  // Equal degrees that nobody set are no grade: Done asks once before it takes them.
  const finish = (state) => {
    const row = rows[at];
    if (state === "graded" && q > 1 && untouched(row) && !row.asked) { row.asked = true; keep(); show(); return; }
    row.state = state;
    onward();
  };
  const even = () => { rows[at] = { ...fresh(), equal: true, state: rows[at].state === "graded" ? "graded" : "open" }; keep(); show(); };

  const quoted = (value) => /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
  const csv = () => {
    const lines = rows.flatMap((row, i) => row.state === "graded" ? [[...data.rows[i].identity, ...row.degrees.map((d) => d / 100)]] : []);
    return [data.columns, ...lines].map((line) => line.map((value) => quoted(String(value))).join(",")).join("\r\n") + "\r\n";
  };
  find("save").addEventListener("click", () => {
    const link = element("a", { href: URL.createObjectURL(new Blob([csv()], { type: "text/csv" })), download: "graded.csv" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    saved = true;
  });
  find("equal").addEventListener("click", even);
  find("skip-row").addEventListener("click", () => finish("skipped"));
  find("done").addEventListener("click", () => finish("graded"));
  find("previous").addEventListener("click", () => go(at - 1));
  find("labels").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("summary")) return;
    const typing = event.target.type === "number", press = event.key.toLowerCase();
    if (event.key === "Enter" && !event.target.closest("button")) {
      event.preventDefault();
      if (typing) event.target.blur();
      finish("graded");
    } else if (typing) return;
    else if (press === "e") even();
    else if (press === "s") finish("skipped");
    else if (press === "n") go(at + 1);
    else if (press === "p") go(at - 1);
    else if (/^[1-9]$/.test(press)) find("labels").querySelectorAll("input[type=range]")[press - 1]?.focus();
  });
  addEventListener("beforeunload", (event) => { if (!stored && !saved) event.preventDefault(); });

  find("progress").hidden = find("card").hidden = find("places").hidden = false;
  find("unstored").hidden = stored;
  show();
})();
