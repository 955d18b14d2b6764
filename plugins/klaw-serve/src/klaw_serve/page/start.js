// The start page: what came last, and questions to begin with; in an empty memory, how to fill it.

import { api } from "./api.js";
import { command, h, nothing, searchFor, stem } from "./dom.js";
import { row } from "./documents.js";

const SHOWN = 6;
const QUESTIONS = [(topic) => `What do I know about ${topic}?`, (topic) => `What was decided about ${topic}?`, (topic) => `"${topic}"`];
const CONDITIONS = ["tag:energy", "path:People/", "-word", '"a phrase"'];

export async function start(ending) {
  const { documents } = await api("recent", { query: { limit: 40 }, ending });
  if (!documents.length) return [empty()];
  const asked = topics(documents).map((topic, at) => QUESTIONS[at](topic));
  return [
    asked.length ? h("section", { class: "examples", "aria-label": "Example questions" }, h("h2", {}, "For example"), h("ul", { class: "chips" }, ...asked.map((question) => h("li", {}, h("a", { class: "chip", href: searchFor(question) }, question)))), h("p", { class: "meta" }, ...CONDITIONS.flatMap((each, at) => [at ? " · " : "", h("code", {}, each)]), " narrow a search.")) : null,
    h("section", { "aria-label": "Recent" }, h("div", { class: "head" }, h("h2", {}, "Recent"), h("a", { class: "meta", href: "#/recent" }, "all")),
      h("ul", { class: "rows" }, ...documents.slice(0, SHOWN).map((each) => row(each)))),
    h("p", { class: "meta hint writes" }, h("a", { href: "#/new" }, "Save a memory"), h("span", { class: "keyed" }, h("kbd", {}, "n"))),
  ].filter(Boolean);
}

// The subjects of the newest notes: their titles, or else the words of their names.
function topics(documents) {
  const named = documents.filter(({ path, origin }) => !["saved", "facts", "conversations"].includes(origin) && !/^[\d._T-]*$/.test(stem(path)));
  const found = named.map(({ title, path }) => (title && title.length < 40 ? title : stem(path).replace(/^[\d_-]+/, "").replace(/[_-]+/g, " ")).trim());
  return [...new Set(found.filter((topic) => topic.length > 2))].slice(0, QUESTIONS.length);
}

const empty = () => nothing("This memory is empty",
  h("p", {}, "Fill it in one of these ways; this page then shows what is in it."),
  h("ol", { class: "ways" },
    h("li", {}, h("strong", {}, "Index your notes."), " They stay where they are.", command("klaw index ~/notes")),
    h("li", { class: "writes" }, h("strong", {}, "Save a sentence."), h("span", {}, " Here, or in a terminal."), h("p", {}, h("a", { class: "button", href: "#/new" }, "Save a memory"))),
    h("li", {}, h("strong", {}, "Let your agent remember."), " It then searches and saves by itself.", command("klaw mcp install claude-code"))));
