"""Ways in which products of this kind have failed their users, as rules that hold here."""
