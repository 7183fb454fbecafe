"""MIRON: does a base model survive its own tokenizer?"""
