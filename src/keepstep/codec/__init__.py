"""The way of a value to stored bytes and back: values, parts, frames, compression, seal."""
