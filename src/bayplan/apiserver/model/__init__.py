"""What requests are about: resources, metadata, field values, selectors, expressions, and what is wrong with them."""
