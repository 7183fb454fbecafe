"""How the lenient check reads a reply: word classes, answers in it, refusals and errors; its accuracy."""
