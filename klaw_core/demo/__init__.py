"""Sample notes that ``klaw demo`` indexes: an invented harbour company and one person's life around it."""
