"""The recipe of starter-text's heads: see README.md."""
