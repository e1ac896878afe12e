"""What a captured stream proves about the model, the server and the client."""
