"""multiview: does a similarity method follow the stated criterion?"""
