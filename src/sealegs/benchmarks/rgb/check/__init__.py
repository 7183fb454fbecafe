"""The lenient check: what a careful reader would say of a reply, and how often that is right."""
