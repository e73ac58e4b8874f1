"""Write recorded games as a folder of static files that plays them back in a browser."""
