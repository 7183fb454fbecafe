"""What lies in the folders of runs, for those who look at them: which runs there are, samples, marks."""
