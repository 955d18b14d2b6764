// Conversations: the chats, and one of them as a timeline.

import { api } from "./api.js";
import { date, h, mount, plural, time } from "./dom.js";

export async function chats() {
  const found = (await api("chats")).chats;
  mount(h("h1", {}, "Conversations"), found.length ? h("ul", { class: "rows" }, ...found.map((each) => h("li", {},
    h("a", { class: "row", href: `#/chat?${new URLSearchParams({ name: each.name })}` }, h("span", { class: "name" }, each.name),
      h("div", { class: "meta" }, `${date(each.first_day)} – ${date(each.last_day)} · ${plural(each.days, "day")}`)))))
    : h("p", { class: "empty" }, "No conversations yet."));
}

export async function chat(query) {
  const name = query.get("name"), limit = Math.min(1000, +(query.get("limit") ?? 100));
  const { messages } = await api(`chats/${encodeURIComponent(name)}`, { query: { limit } });
  let day = "";
  const items = messages.flatMap((message) => {
    const own = date(message.ts), head = own === day ? [] : [h("li", { class: "day" }, own)];
    day = own;
    return [...head, h("li", { class: message.role }, h("div", { class: "meta" }, message.type === "session_break" ? "session break" : message.role, " · ", time(message.ts)),
      message.content && h("p", { class: "said" }, message.content))];
  });
  const more = messages.length >= limit && limit < 1000;
  mount(h("h1", {}, name), more && h("p", {}, h("a", { href: `#/chat?${new URLSearchParams({ name, limit: limit * 2 })}` }, "Show earlier messages")),
    items.length ? h("ol", { class: "timeline" }, ...items) : h("p", { class: "empty" }, "This chat has no messages."));
}
