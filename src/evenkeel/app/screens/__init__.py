"""One module a page, each with a function `page`. (Streamlit would take a folder `pages` for its own.)"""
