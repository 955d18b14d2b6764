"""Links between documents: ``[[…]]``, Markdown links, and relations in front matter."""
