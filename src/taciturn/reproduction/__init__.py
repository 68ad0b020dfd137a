"""The paper's experiments run again, and the gap in its proof measured."""
