//! Descriptions of machines: caches, sharing, latencies; files and host detection.
