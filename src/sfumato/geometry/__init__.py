"""Ranges of leaf codes and what is made of them: grids, trees, boxes, halvings, and the candidates that divide them."""
