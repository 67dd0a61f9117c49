"""Explorers: DisCo, UcbExplore and the certified explorer, and the one loop that runs them."""
