"""The only place where data is checked, and the way out of answers: `training` is what a call goes through."""
