"""MIRAE: how alike are a model's answers when it is asked again, and when the prompt grows?"""
