"""MIRON: is a base model robust to its own tokenizer?"""
