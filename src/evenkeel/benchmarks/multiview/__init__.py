"""multiview: does a similarity method see the view it was asked for?"""
