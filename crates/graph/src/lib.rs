//! Graphs, features, labels and splits; readers and writers; the aggregation kernel.
