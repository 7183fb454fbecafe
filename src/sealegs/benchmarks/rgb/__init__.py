"""RGB: does the answer survive bad retrieval?"""
