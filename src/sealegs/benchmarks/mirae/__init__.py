"""MIRAE: does a model say the same thing when asked again, and when the prompt grows?"""
