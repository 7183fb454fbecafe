"""What generators and builders of data sets share."""
