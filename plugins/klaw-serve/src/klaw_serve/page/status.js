// Status: what is indexed and what does not work; the doctor, and an index run while it runs.

import { api, events } from "./api.js";
import { attempt, bar, h, mount, number } from "./dom.js";

export async function status() {
  const [found, run] = [await api("status"), await api("index")];
  const counts = Object.entries(found.origins);
  const total = (name) => number(counts.reduce((sum, [, each]) => sum + each[name], 0));
  const progress = h("div", { class: "progress", role: "status" });
  const findings = h("div", { role: "status" });
  const begin = h("button", { class: "first writes", onclick: () => attempt(async () => show(await api("index", { method: "POST", body: {} }))) }, "Update the index");
  const doctor = h("button", { onclick: () => attempt(() => examine(doctor, findings)) }, "Check everything");
  function show(state) {
    begin.disabled = state.state === "running";
    progress.replaceChildren(...told(state));
  }
  mount(h("h1", {}, "Status"), h("dl", { class: "tiles" }, ...tiles([["Documents", total("documents")], ["Chunks", total("chunks")], ["Embedder", found.embedder], ["Retrievers", found.retrievers.join(", ")]])),
    ...found.problems.map((text) => h("p", { class: "problem" }, h("strong", {}, "Problem: "), text)),
    h("div", { class: "actions" }, begin, doctor), progress, findings,
    h("h2", {}, "Indexed documents"), h("table", { class: "plain" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Source"), h("th", { scope: "col", class: "extra" }, "Collection"), h("th", { scope: "col", class: "num" }, "Documents"), h("th", { scope: "col", class: "num" }, "Chunks"))),
      h("tbody", {}, ...counts.map(([origin, each]) => h("tr", {}, h("td", {}, origin, found.workspaces[origin] ? h("div", { class: "meta path" }, found.workspaces[origin]) : null),
        h("td", { class: "extra" }, found.collections[origin] ?? "memory"), h("td", { class: "num" }, number(each.documents)), h("td", { class: "num" }, number(each.chunks)))))),
    h("details", { class: "inside" }, h("summary", {}, "Database"), h("table", { class: "plain" }, h("tbody", {}, h("tr", {}, h("td", {}, "file"), h("td", { class: "path" }, found.location)),
      ...Object.entries(found.statistics).map(([name, value]) => h("tr", {}, h("td", {}, name.replaceAll("_", " ")), h("td", {}, typeof value === "number" ? number(value) : value)))))));
  show(run);
  return events((kind, data) => {
    if (kind !== "progress") return;
    show(data);
    if (data.state === "done") setTimeout(() => location.hash === "#/status" && refresh(show, data), 300);
  });
}

async function refresh(show, state) {
  const found = await api("status").catch(() => null);
  if (!found) return;
  const values = document.querySelectorAll(".tiles dd");
  ["documents", "chunks"].forEach((name, at) => (values[at].textContent = number(Object.values(found.origins).reduce((sum, each) => sum + each[name], 0))));
  show(state);
}

const tiles = (pairs) => pairs.map(([name, value]) => h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value)));

function told(state) {
  if (state.state === "running") {
    const { stage, done, total } = state.progress ?? { stage: "scan", done: 0, total: 0 };
    const share = total ? done / total : 0;
    return [bar(share, `${Math.round(share * 100)} %`), h("p", { class: "meta" }, `${stage}: ${total ? `${Math.round(share * 100)} %` : "…"}`)];
  }
  if (state.state === "failed") return [h("p", { class: "problem" }, h("strong", {}, state.error), " ", state.hint ?? "")];
  if (state.state !== "done") return [];
  const { added, changed, removed, unchanged, lacking } = state.report;
  return [h("p", { class: "meta" }, `Up to date: ${added} new, ${changed} changed, ${removed} removed, ${unchanged} unchanged${lacking ? `, ${lacking} chunks without a vector` : ""}.`)];
}

async function examine(button, findings) {
  button.disabled = true;
  findings.replaceChildren(h("p", { class: "meta" }, "Checking …"));
  try {
    const found = (await api("doctor")).findings;
    findings.replaceChildren(...(found.length ? found.map((each) => h("p", { class: "problem" }, h("strong", {}, each.what), h("span", { class: "meta" }, ` ${each.where} → ${each.hint}`)))
      : [h("p", {}, "No problems found.")]));
  } finally { button.disabled = false; }
}
