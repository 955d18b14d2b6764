// Facts: what is true, and how it came to be.

import { api } from "./api.js";
import { command, date, h, mount, nothing, plural, searchFor } from "./dom.js";

const since = (fact) => [fact.valid_from && `since ${date(fact.valid_from)}`, fact.valid_to && `until ${date(fact.valid_to)}`].filter(Boolean).join(" ");

export async function facts(query) {
  const asked = query.get("q") ?? "", everything = query.get("everything") === "true";
  const { facts: found, notices } = await api("facts", { query: { query: asked, everything: everything || null } });
  const good = found.filter((each) => !each.is_weak), weak = found.filter((each) => each.is_weak);
  const input = h("input", { type: "search", value: asked, placeholder: "Search facts", "aria-label": "Search facts" });
  const all = h("input", { type: "checkbox", checked: everything });
  const go = (event) => { event?.preventDefault(); location.hash = `#/facts?${new URLSearchParams({ q: input.value, everything: all.checked })}`; };
  all.addEventListener("change", () => go());
  mount(h("h1", {}, "Facts"), h("form", { role: "search", onsubmit: go }, h("div", { class: "ask" }, input, h("button", { class: "first" }, "Find")),
    h("p", {}, h("label", { class: "tick" }, all, "include facts that are no longer true"))),
    good.length > 0 && notices.length > 0 && h("p", { class: "count", role: "status" }, notices.join(" · ")),
    good.length ? list(good) : weak.length ? h("p", {}, "No good match: most likely none of these facts answers the question.")
      : asked ? nothing("No fact fits", h("p", {}, "Ask with other words, or ", h("a", { href: searchFor(asked) }, "search everything"), "."))
        : nothing("No facts yet", h("p", {}, "A fact is one sentence that is true until another replaces it. Tell one yourself, or let a model find them in conversations."), command('klaw remember "I live in Lyon"'), command("klaw facts extract")),
    weak.length > 0 && h("details", { class: "others" }, h("summary", {}, plural(weak.length, "weak match", "weak matches")), list(weak)));
}

const list = (facts) => h("ul", { class: "rows" }, ...facts.map((each) => h("li", {}, h("a", { class: `row${each.valid_to || each.retracted_at ? " ended" : ""}`, href: `#/fact?${new URLSearchParams({ id: each.id })}` },
  h("span", { class: "name" }, each.text), h("div", { class: "meta" }, [each.category, each.slot, since(each)].filter(Boolean).join(" · "))))));

export async function fact(query) {
  const found = (await api(`facts/${encodeURIComponent(query.get("id"))}`)).facts;
  mount(h("h1", {}, found.at(-1)?.slot ?? "Fact"), h("ol", { class: "timeline" }, ...found.map((each) => h("li", { class: each.valid_to || each.retracted_at ? "ended" : "true" },
    h("div", { class: "meta" }, since(each) || `recorded ${date(each.recorded_at)}`, " · ", each.made_by), h("p", { class: "said" }, each.text),
    ...[...new Set(each.quotes.map((quote) => quote.chat))].map((name) => h("p", { class: "meta" }, "said in ", h("a", { href: `#/chat?${new URLSearchParams({ name })}` }, name)))))));
}
