// Conversations: the chats, and one of them as a timeline.

import { api } from "./api.js";
import { command, date, h, mount, nothing, plural, time } from "./dom.js";

export async function chats() {
  const found = (await api("chats")).chats;
  mount(h("h1", {}, "Conversations"), found.length ? h("ul", { class: "rows" }, ...found.map((each) => h("li", {},
    h("a", { class: "row", href: `#/chat?${new URLSearchParams({ name: each.name })}` }, h("div", { class: "head" }, h("span", { class: "name" }, each.name), h("span", { class: "meta" }, plural(each.days, "day"))),
      h("div", { class: "meta" }, each.first_day === each.last_day ? date(each.last_day) : `${date(each.first_day)} – ${date(each.last_day)}`)))))
    : nothing("No conversations yet", h("p", {}, "Agents that are connected to Klaw store what is said. Exports of other programs can be imported."),
      command("klaw hook install claude-code"), command("klaw import conversations.json --from chatgpt")));
}

// The newest messages of a chat; or one day of it, with the messages `from` to `to` marked.
export async function chat(query) {
  const name = query.get("name"), day = query.get("day"), from = +query.get("from"), to = +query.get("to") || from;
  const limit = day ? 1000 : Math.min(1000, +(query.get("limit") ?? 100));
  const of = day ? { since: `${day}T00:00:00Z`, until: `${day}T23:59:59.999Z` } : {};
  const { messages } = await api(`chats/${encodeURIComponent(name)}`, { query: { limit, ...of } });
  let last = "";
  const items = messages.flatMap((message, at) => {
    const own = date(message.ts), head = own === last ? [] : [h("li", { class: "day" }, own)], marked = at + 1 >= from && at + 1 <= to;
    last = own;
    return [...head, h("li", { class: `${message.role}${marked ? " chunk" : ""}`, id: marked && at + 1 === from ? "chunk" : null },
      h("div", { class: "meta" }, message.type === "session_break" ? "session break" : message.role, " · ", time(message.ts)), message.content && h("p", { class: "said" }, message.content))];
  });
  const more = !day && messages.length >= limit && limit < 1000, link = (given, text) => h("p", {}, h("a", { href: `#/chat?${new URLSearchParams({ name, ...given })}` }, text));
  mount(h("h1", {}, name), day && link({}, "Show the whole conversation"), more && link({ limit: limit * 2 }, "Show earlier messages"),
    items.length ? h("ol", { class: "timeline" }, ...items) : nothing("No messages", h("p", {}, "This chat has no messages here.")));
  document.getElementById("chunk")?.scrollIntoView({ block: "center" });
}
