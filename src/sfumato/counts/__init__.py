"""The door to the data: questions in public terms, the meter that charges for them, and the engines behind it."""
