"""The story: what happens to a run, stage by stage. Depth is one call away, in the verbs and the doors."""
